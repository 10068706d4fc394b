// A pattern of the linear engine that is also bounded in time: a text for which it could take more than about 50 ms is
// not read at all. Made by config/pattern.ts; callers that run it on the text of a stranger treat TextTooLong as a
// refusal. The engine takes a step for each character and each state that it is in; the most states are counted from
// the pattern.

/** At 50 to 90 ns each (Node.js 20, x64). */
const MOST_STEPS = 500_000;

/** The text is too long for the pattern: whether it fits is not known. */
export class TextTooLong extends Error {
  constructor(characters: number, most: number) {
    super(`a text of ${characters} characters, its pattern reads ${most}`);
    this.name = 'TextTooLong';
  }
}

export class LinearPattern extends RegExp {
  /** Characters that it reads. */
  readonly most: number;

  /** @param states that the pattern may be in at once, statesOf() */
  constructor(source: string, states: number) {
    super(source, 'l');
    this.most = Math.floor(MOST_STEPS / states);
  }

  /** Throws TextTooLong. Called by test() as well (ECMA-262 section 22.2.6.16). */
  override exec(text: string): RegExpExecArray | null {
    if (text.length > this.most) throw new TextTooLong(text.length, this.most);
    return super.exec(text);
  }
}

/**
 * States that a pattern without counts can be in at once, at most. Without ^ a match may begin at each character, so
 * any character of the pattern may be the next; with ^ only what is optional, repeated or one of several leaves a
 * choice.
 */
export function statesOf(source: string): number {
  let atoms = 1;
  let choices = 1;
  for (let i = 0; i < source.length; i++) {
    const c = source[i];
    if (c === '\\') {
      i++;
      atoms++;
    } else if (c === '[') {
      for (i++; i < source.length && source[i] !== ']'; i++) if (source[i] === '\\') i++;
      atoms++;
    } else if (c === '|' || c === '*' || c === '+' || (c === '?' && source[i - 1] !== '(')) choices++;
    else if (c !== '(' && c !== ')' && c !== '^' && c !== '$' && c !== '?') atoms++;
  }
  // An alternative of the whole pattern may lack the ^ that another has.
  return source.startsWith('^') && !source.includes('|') ? choices : atoms + choices;
}
