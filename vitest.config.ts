import { defineConfig } from 'vitest/config';

// One worker a core; every test file stands alone (own ports, own folders), so files may run side by side.
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 20_000,
    hookTimeout: 20_000,
    // What is waited for comes in its time, on a busy machine too.
    expect: { poll: { timeout: 10_000 } },
    reporters: ['default'],
  },
});
