// User Properties as lines "name: value" in a form, and as the REST API takes them. Pure.

/** null: a line has no colon, or a name comes twice. */
export function readUserProperties(text: string): Record<string, string> | null {
  const found = new Map<string, string>();
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue;
    const at = line.indexOf(':');
    const name = line.slice(0, at).trim();
    if (at < 1 || name === '' || found.has(name)) return null;
    found.set(name, line.slice(at + 1).trim());
  }
  return Object.fromEntries(found);
}
