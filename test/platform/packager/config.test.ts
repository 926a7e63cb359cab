import { tmpdir } from 'node:os';
import { resolve } from 'node:path';
import { readPackagerConfig } from '../../../src/platform/packager/config';

const DEFAULTS = {
  host: '127.0.0.1',
  port: 8082,
  apiKey: undefined,
  keyFilesPath: resolve('keys'),
  folder: tmpdir(),
  maxBytes: 8192 * 1024 * 1024,
  ffmpeg: 'ffmpeg',
  shakaPackager: undefined,
  logLevel: 'info',
  unknownVariables: [],
};

test('starts without any variable, and takes an empty one as absent', () => {
  expect(readPackagerConfig({})).toEqual(DEFAULTS);
  expect(readPackagerConfig({ PACKAGER_PORT: '', PACKAGER_APIKEY: '', PATH: '/bin' })).toEqual(DEFAULTS);
});

test('takes every variable, and names the nearest of one that it does not know', () => {
  const env = {
    PACKAGER_HOST: '0.0.0.0',
    PACKAGER_PORT: '0',
    PACKAGER_APIKEY: '0123456789abcdef',
    PACKAGER_KEYFILESPATH: '/keys',
    PACKAGER_FOLDER: '/media',
    PACKAGER_MAXMB: '1',
    PACKAGER_FFMPEG: '/bin/ffmpeg',
    PACKAGER_SHAKAPACKAGER: '/bin/packager',
    PACKAGER_LOGLEVEL: 'debug',
    PACKAGER_FOLDR: '/x',
  };
  expect(readPackagerConfig(env)).toEqual({
    host: '0.0.0.0',
    port: 0,
    apiKey: '0123456789abcdef',
    keyFilesPath: '/keys',
    folder: '/media',
    maxBytes: 1024 * 1024,
    ffmpeg: '/bin/ffmpeg',
    shakaPackager: '/bin/packager',
    logLevel: 'debug',
    unknownVariables: ['PACKAGER_FOLDR (did you mean PACKAGER_FOLDER?)'],
  });
});

test('tells every fault at once, and quotes no value', () => {
  const env = {
    PACKAGER_PORT: '70000',
    PACKAGER_APIKEY: 'SECRET',
    PACKAGER_FOLDER: '/a,SECRET',
    PACKAGER_MAXMB: '0',
    PACKAGER_LOGLEVEL: 'loud',
  };
  const read = () => readPackagerConfig(env);
  expect(read).toThrow(
    `The configuration has 5 faults:
  - PACKAGER_PORT: must be at most 65535
  - PACKAGER_APIKEY: must have at least 16 characters
  - PACKAGER_FOLDER: must be a path without a comma
  - PACKAGER_MAXMB: must be a whole number of megabytes, from 1 to 99999999
  - PACKAGER_LOGLEVEL: must be one of error, warn, info, debug, silent`,
  );
});
