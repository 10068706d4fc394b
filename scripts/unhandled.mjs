// A vitest reporter: writes the number of errors that no test handled beside the JSON report, for again.mjs. Used by `make test`.
import { writeFileSync } from 'node:fs';

export default class Unhandled {
  onTestRunEnd(_modules, errors) {
    writeFileSync('test-report.json.unhandled', String(errors.length));
  }
}
