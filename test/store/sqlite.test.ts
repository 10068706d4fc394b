// The SQLite journal passes the contract of journals, with every driver there is.
import { storeContract } from '../contract/store.ts';
import { crashCopy, storePath, testJournal } from '../harness/journal.ts';

storeContract('the SQLite journal', () => {
  let path = storePath();
  return {
    make: () => testJournal(path).journal,
    reopen: () => {
      path = crashCopy(path);
      return testJournal(path).journal;
    },
  };
});
