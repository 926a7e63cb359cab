import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { API_KEY, type Load, load } from './load';
import { processorMs, type Started, start } from './processes';

/** A POST body with every part of a key file; the values are a published sample (see test/vectors). */
export const BODY = JSON.stringify({
  cenc: { keyid: 'RNpS70UjCY5oVHd+4yJoHQ==', contentkey: 'lnA03mLuxnL3toiRMxV4Zw==' },
  playready: {
    laurl: 'https://playready-license.example.com/rightsmanager.asmx',
    checksum: 'pcTs6CEp98A=',
  },
  widevine: { psshdata: 'IiRkN2EyOTk1Ni0yOTgwLTQzMzgtYjYyNy04N2MxZjA3OWUwOTFI49yVmwY=' },
  fairplay: {
    key: 'CBF76BB43B9A54254A5FC20074A3A53B',
    iv: '1A3F2AA76D84742DD123E3E50E7BC681',
    laurl: 'skd://fairplay-license.example.com/license/d7a29956-2980-4338-b627-87c1f079e091',
  },
});

export const pathOf = (name: string) => `/api/keyfile/${name}`;
export const names = (count: number) => Array.from({ length: count }, (_none, index) => `stream-${index}`);

const folders = new Set<string>();

/** A folder of its own for one figure, on the disk that TMPDIR names. */
export async function inFolder<T>(run: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'packager-drm-api-bench-'));
  folders.add(folder);
  try {
    return await run(folder);
  } finally {
    removeFolder(folder);
  }
}

/** Removes the folders of figures that were not finished. */
export function removeFolders(): void {
  for (const folder of folders) removeFolder(folder);
}

function removeFolder(folder: string): void {
  // Its last writer may only just have been killed.
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  folders.delete(folder);
}

export function startSidecar(
  folder: string,
  env: Record<string, string> = {},
  mostMs?: number,
): Promise<Started> {
  const keys = join(folder, 'keys');
  mkdirSync(keys, { recursive: true });
  const variables = {
    PACKAGERDRMAPI_APIKEY: API_KEY,
    PACKAGERDRMAPI_KEYFILESPATH: keys,
    PACKAGERDRMAPI_HOST: '127.0.0.1',
  };
  return start('sidecar/main.js', { ...variables, ...env }, '/readyz', join(folder, 'sidecar.log'), mostMs);
}

/** Loads a server as `load` does, and answers how much processor time it took for a request, too. */
export async function loadAndWeigh(
  { url, child }: Started,
  work: Omit<Load, 'url'> & { readonly seconds: number },
): Promise<{ perSecond: number; processorUs: number }> {
  const before = processorMs(child);
  const perSecond = await load({ url, ...work });
  return { perSecond, processorUs: ((processorMs(child) - before) / (perSecond * work.seconds)) * 1000 };
}

/** The key file that BODY makes, as the sidecar writes it. */
export async function keyFileText(sidecar: Started, name: string): Promise<string> {
  const headers = { 'x-api-key': API_KEY, 'content-type': 'application/json' };
  const response = await fetch(sidecar.url + pathOf(name), { method: 'POST', headers, body: BODY });
  if (!response.ok) throw new Error(`the sidecar answered ${response.status}`);
  return response.text();
}
