// Whether a text may be a topic filter (MQTT 5.0 section 4.7), told before anything is asked of the gateway. Pure; used
// by the message page.

/** '#' only as the whole last level, '+' only as a whole level, no U+0000, not empty. */
export function isTopicFilter(text: string): boolean {
  if (text === '' || text.includes('\0')) return false;
  const levels = text.split('/');
  return levels.every(
    (level, i) =>
      level === '+' || (level === '#' && i === levels.length - 1) || !(level.includes('+') || level.includes('#')),
  );
}
