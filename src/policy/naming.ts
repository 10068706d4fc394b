// Names of a client inside topics that operators write: %c the client id, %u the username. Used by rewrite.ts and
// topics.ts. A name is one topic level or nothing: with "/", "+" or "#" in it, it would reach what belongs to another
// client, so whoever needs it then gets no topic at all.
import type { Template } from '../mqtt/template.ts';

/** The names of one client. */
export interface Names {
  readonly clientId: string;
  readonly username: string | null;
}

const VARIABLE = /%[cu]/g;

/** True when `text` mentions a client. */
export function hasNames(text: string): boolean {
  return text.includes('%c') || text.includes('%u');
}

/** `text` with the names of a client; null when one that it mentions is missing or not one topic level. */
export function withNames(text: string, names: Names): string | null {
  if (!hasNames(text)) return text;
  let fits = true;
  const filled = text.replace(VARIABLE, (variable, at: number) => {
    const name = variable === '%c' ? names.clientId : (names.username ?? '');
    // "$" at the very beginning makes a topic of another kind.
    if (name === '' || /[/+#\0]/.test(name) || (at === 0 && name.startsWith('$'))) fits = false;
    return name;
  });
  return fits ? filled : null;
}

/** A template for one client; null as withNames(). Only the operator's text is looked at, never a capture. */
export function templateFor(template: Template, names: Names): Template | null {
  const parts: Template['parts'][number][] = [];
  for (const part of template.parts) {
    const text = part.kind === 'text' ? withNames(part.text, names) : null;
    if (part.kind !== 'text') parts.push(part);
    else if (text === null) return null;
    else parts.push({ kind: 'text', text });
  }
  return { ...template, parts };
}
