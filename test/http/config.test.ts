import { z } from 'zod';
import { ConfigError, readConfig, unknownVariables } from '../../src/http/config';

const schema = z.object({
  APP_NAME: z.string('is missing'),
  APP_SIZE: z.string().regex(/^\d+$/, 'must be a number').default('7'),
});

describe('readConfig', () => {
  it('reads the variables of the schema and no others', () => {
    expect(readConfig(schema, { APP_NAME: 'a', APP_SIZE: '3', OTHER: 'x' })).toEqual({
      APP_NAME: 'a',
      APP_SIZE: '3',
    });
  });

  it('takes an empty variable for an absent one', () => {
    expect(readConfig(schema, { APP_NAME: 'a', APP_SIZE: '' })).toEqual({ APP_NAME: 'a', APP_SIZE: '7' });
  });

  it('throws one error that holds every fault and quotes no value', () => {
    const error = new ConfigError(['APP_NAME: is missing', 'APP_SIZE: must be a number']);
    expect(() => readConfig(schema, { APP_SIZE: 'secret' })).toThrow(error);
    expect(error.message).toBe(
      'The configuration has 2 faults:\n  - APP_NAME: is missing\n  - APP_SIZE: must be a number',
    );
  });

  it('says so when there is one fault', () => {
    expect(() => readConfig(schema, {})).toThrow('The configuration has a fault:\n  - APP_NAME: is missing');
  });
});

describe('unknownVariables', () => {
  it('names what has the prefix and is not known, with the nearest name', () => {
    const env = { APP_NAME: 'a', APP_NAEM: 'secret', APP_SOMETHING_ELSE: 'secret', OTHER: 'x' };
    expect(unknownVariables('APP_', ['APP_NAME', 'APP_SIZE'], env)).toEqual([
      'APP_NAEM (did you mean APP_NAME?)',
      'APP_SOMETHING_ELSE',
    ]);
  });
});
