import { join } from 'node:path';
import { CliError, EXIT } from '../../../src/cli/cli-error';
import { install } from './installation';
import { sidecarOn, troubles } from './run-doctor';

test('checks the packager’s part when no sidecar answers, which is a fault of its own', async () => {
  const packager = await install();
  const problem = {
    code: 'sidecar_unreachable',
    description: 'No sidecar answers at http://127.0.0.1:9000.',
  };
  const away = async () => {
    throw new CliError(EXIT.unreachable, problem);
  };
  const found = await troubles(packager, [], { sidecar: () => sidecarOn('/', { ready: away, list: away }) });
  expect(found).toEqual([
    {
      about: 'http://127.0.0.1:9000',
      severity: 'fault',
      code: 'sidecar_unreachable',
      message: problem.description,
      todo: 'start the sidecar, or correct what the sentence names, and run this again; the packager’s part is checked all the same',
    },
    {
      about: 'keys',
      severity: 'warning',
      code: 'same_folder_unknown',
      message: 'Whether the sidecar writes here is not known',
      todo: 'let the sidecar answer, and run this again',
    },
  ]);
});

test.each([
  ['usage', 'name the sidecar and its key as the sentence says'],
  [
    'not_a_sidecar',
    'correct the address by --url or PACKAGERDRM_URL, or the proxy that stands before the sidecar',
  ],
  ['unauthorized', 'give an API key of this sidecar by --key-file or PACKAGERDRM_APIKEY'],
  ['forbidden', 'give an API key that may list key files, by --key-file or PACKAGERDRM_APIKEY'],
  ['too_many_attempts', 'wait as long as the sentence says, give the right API key'],
  ['something_new', 'look into it'],
])('says what mends the way to the sidecar when the problem is %s', async (code, todo) => {
  const list = async () => {
    throw new CliError(EXIT.unreachable, { code, description: 'A sentence.' });
  };
  const packager = await install();
  const [found] = await troubles(packager, [], {
    sidecar: () => sidecarOn(join(packager, 'keys'), { list }),
  });
  expect(found).toEqual({
    about: 'http://127.0.0.1:9000',
    severity: 'fault',
    code: `sidecar_${code}`.replace('sidecar_sidecar', 'sidecar'),
    message: 'A sentence.',
    todo: `${todo}, and run this again; the packager’s part is checked all the same`,
  });
});
