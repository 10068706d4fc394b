// What a call throws, for tests that look at the error itself.

/** The error that `call` throws. Fails when it returns. */
export function caught(call: () => unknown): unknown {
  try {
    call();
  } catch (error) {
    return error;
  }
  throw new Error('nothing was thrown');
}
