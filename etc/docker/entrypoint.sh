#!/bin/sh
# Start of the container. TIDEGATE_LISTEN=ADDRESS (0.0.0.0, or :: for IPv6 as well) opens MQTT (1883) and the console (8081) to the
# container's network. That needs a password: TIDEGATE_PASSWORD, or TIDEGATE_PASSWORD_FILE=/run/secrets/NAME, for the user
# TIDEGATE_USERNAME (default: tidegate). Without it the container does not start. Other words than "start" run that command.
set -eu
refuse() { echo "tidegate: $*" >&2; exit 78; }

if [ "${1:-start}" = start ] && [ -n "${TIDEGATE_LISTEN:-}" ]; then
  user=${TIDEGATE_USERNAME:-tidegate}
  case $user in
    *[!A-Za-z0-9_]* | *__* | *_FILE) refuse "TIDEGATE_USERNAME: letters, digits and single _ only; for other names use a password file" ;;
  esac
  case $TIDEGATE_LISTEN in
    *[!0-9A-Fa-f.:]*) refuse "TIDEGATE_LISTEN: an IP address expected, for example 0.0.0.0" ;;
    *:*) bind="[$TIDEGATE_LISTEN]:1883" ;;
    *) bind="$TIDEGATE_LISTEN:1883" ;;
  esac
  if [ -n "${TIDEGATE_PASSWORD_FILE:-}" ]; then
    [ -r "$TIDEGATE_PASSWORD_FILE" ] || refuse "TIDEGATE_PASSWORD_FILE: $TIDEGATE_PASSWORD_FILE is not readable by user $(id -u)"
    TIDEGATE_PASSWORD=$(cat "$TIDEGATE_PASSWORD_FILE")
  fi
  [ -n "${TIDEGATE_PASSWORD:-}" ] ||
    refuse "TIDEGATE_LISTEN=$TIDEGATE_LISTEN makes the gateway reachable: set TIDEGATE_PASSWORD or TIDEGATE_PASSWORD_FILE"
  # Variables, not arguments: other processes can read arguments.
  export "TIDEGATE__listeners__tcp__bind=$bind" "TIDEGATE__http_server__ip_addr=$TIDEGATE_LISTEN" \
    TIDEGATE__auth__allow_anonymous=false "TIDEGATE__http_server__username=$user" \
    "TIDEGATE__http_server__password=$TIDEGATE_PASSWORD"
  export "TIDEGATE__auth__password__$user=$TIDEGATE_PASSWORD"
  unset TIDEGATE_PASSWORD
fi
exec tidegate "$@"
