import * as fc from 'fast-check';
import { chooseKeys } from '../../../src/drm/cpix/choose';
import { cpixKeyFile } from '../../../src/drm/cpix/key-file';
import { readCpix } from '../../../src/drm/cpix/read';
import { exportKeyFile } from '../../../src/drm/export/export-key-file';
import type { ExportScheme } from '../../../src/drm/export/names';
import { type KeyFile, keyFileLines, renderKeyFile } from '../../../src/drm/key-file';
import { arbitraryKeyFiles } from '../../support/arbitrary-key-files';

const textOf = (keyFile: KeyFile) => renderKeyFile(keyFileLines(keyFile));

function asCpix(text: string, scheme?: ExportScheme): string {
  const exported = exportKeyFile(text, 'cpix', scheme);
  if (!exported.ok) throw new Error(exported.problem.description);
  return exported.text;
}

function imported(cpix: string): KeyFile {
  const document = readCpix(cpix);
  if (!document.ok) throw new Error(document.problem.description);
  const chosen = chooseKeys(document.value, {});
  if (!chosen.ok) throw new Error(chosen.faults.map(({ description }) => description).join('; '));
  const made = cpixKeyFile(document.value, chosen.value, {});
  if (!made.ok) throw new Error(made.faults.map(({ description }) => description).join('; '));
  expect([...chosen.value.findings, ...made.findings]).toEqual([]);
  return made.keyFile;
}

/** A key that no system signals is no candidate beside one that has: the document doesn't say whose it is. */
const isSignalled = ({ cenc, widevine, playready, fairplay }: KeyFile) =>
  cenc === undefined || widevine !== undefined || playready !== undefined || fairplay === undefined;

/** Hex digits are written in upper case, since CPIX has bytes. */
const inUpperCase = ({ fairplay, ...others }: KeyFile): KeyFile => ({
  ...others,
  ...(fairplay && {
    fairplay: { ...fairplay, key: fairplay.key.toUpperCase(), iv: fairplay.iv.toUpperCase() },
  }),
});

test('what is exported to CPIX and imported again has the same lines, hex digits in upper case', () => {
  fc.assert(
    fc.property(arbitraryKeyFiles.filter(isSignalled), (keyFile) => {
      expect(textOf(imported(asCpix(textOf(keyFile))))).toBe(textOf(inUpperCase(keyFile)));
    }),
    { numRuns: 60 },
  );
});

test('the document of one scheme gives the lines of that scheme', () => {
  fc.assert(
    fc.property(
      arbitraryKeyFiles.filter(({ cenc, fairplay }) => cenc !== undefined && fairplay !== undefined),
      (keyFile) => {
        const { fairplay, ...dash } = inUpperCase(keyFile);
        expect(imported(asCpix(textOf(keyFile), 'cenc'))).toEqual(dash);
        expect(imported(asCpix(textOf(keyFile), 'cbcs'))).toEqual({ fairplay });
      },
    ),
    { numRuns: 30 },
  );
});
