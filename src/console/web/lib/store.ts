// A value that pages watch. Used by everything that outlives one page: session, theme, language, live counters.
import { useEffect, useState } from 'preact/hooks';

export interface Store<T> {
  get(): T;
  set(value: T): void;
  /** Calls `handler` after each change until the returned function is called. */
  watch(handler: (value: T) => void): () => void;
}

export function createStore<T>(initial: T): Store<T> {
  let value = initial;
  const handlers = new Set<(value: T) => void>();
  return {
    get: () => value,
    set: (next) => {
      if (Object.is(next, value)) return;
      value = next;
      for (const handler of [...handlers]) handler(value);
    },
    watch: (handler) => {
      handlers.add(handler);
      return () => handlers.delete(handler);
    },
  };
}

/** The value of a store; the component is drawn again when it changes. */
export function useStore<T>(store: Store<T>): T {
  const [value, setValue] = useState(() => store.get());
  useEffect(() => {
    setValue(() => store.get());
    return store.watch((next) => setValue(() => next));
  }, [store]);
  return value;
}

/** What the browser keeps for this page, or the fallback where it keeps nothing. */
export function remembered(key: string, fallback: string): string {
  try {
    return localStorage.getItem(`tidegate.${key}`) ?? fallback;
  } catch {
    return fallback;
  }
}

export function remember(key: string, value: string): void {
  try {
    localStorage.setItem(`tidegate.${key}`, value);
  } catch {
    // A browser that keeps nothing starts with the defaults each time.
  }
}
