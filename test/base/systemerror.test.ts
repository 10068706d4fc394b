// Texts of failures: what people read in one line instead of what Node.js and OpenSSL write.
import { describe, expect, it } from 'vitest';
import { errorText } from '../../src/base/errors.ts';
import { listenErrorText, systemErrorText } from '../../src/base/systemerror.ts';

function failed(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}

const refused = failed('ECONNREFUSED', 'connect ECONNREFUSED 127.0.0.1:1');

describe('systemErrorText', () => {
  it('says a known code in words and keeps the code', () => {
    const missing = failed('ENOENT', "ENOENT: no such file or directory, open '/x'");
    expect(systemErrorText(missing)).toBe('no such file or folder (ENOENT)');
  });

  it('leaves a code it does not know as the system wrote it', () => {
    expect(systemErrorText(failed('ESTALE', 'ESTALE: stale file handle'))).toBe('ESTALE: stale file handle');
  });

  it('takes the first of several addresses that all failed', () => {
    expect(systemErrorText(new AggregateError([refused, refused]))).toBe('connection refused (ECONNREFUSED)');
  });
});

describe('listenErrorText', () => {
  it('says what is wrong with an address or a folder, not with a file', () => {
    expect(listenErrorText(failed('EADDRINUSE', 'listen'))).toBe('address already in use (EADDRINUSE)');
    expect(listenErrorText(failed('ENOENT', 'listen'))).toBe('no such folder (ENOENT)');
  });
});

describe('errorText', () => {
  it('gives the first error of a host whose addresses all failed, where Node.js gives no text', () => {
    expect(errorText(new AggregateError([refused]))).toBe('connect ECONNREFUSED 127.0.0.1:1');
  });

  it.each([
    [
      'write EPROTO 809C8A783B7F0000:error:0A00010B:SSL routines:ssl3_get_record:wrong version number:../deps/x.c:350:\n',
      'the peer does not speak TLS (wrong version number)',
    ],
    [
      '809CA7FD347F0000:error:0A000410:SSL routines:ssl3_read_bytes:sslv3 alert handshake failure:../deps/x.c:1605:SSL alert number 40\n',
      'sslv3 alert handshake failure',
    ],
  ])('takes the reason out of what OpenSSL writes', (message, reason) => {
    expect(errorText(new Error(message))).toBe(reason);
  });

  it('leaves every other message as it is', () => {
    expect(errorText(new Error('plain: text'))).toBe('plain: text');
  });
});
