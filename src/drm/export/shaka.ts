import type { StreamKey } from './stream-key';

/**
 * The flags by which shaka-packager (3.4.2) encrypts and signals with one key. They are secrets, which belong into a
 * file of flags: every user of a machine may list the arguments of its processes.
 * @param key `boxes` may be none. FairPlay is then signalled alone; with the common box, HLS playlists would get a line
 * that offers the key to players without FairPlay, and names the IV.
 */
export function shakaFlags(key: Omit<StreamKey, 'systems'>): string[] {
  const { scheme, keyId, iv, keyUri, boxes } = key;
  const ofIv = iv ? `:iv=${iv.toString('hex')}` : '';
  return [
    '--enable_raw_key_encryption',
    `--protection_scheme=${scheme}`,
    `--keys=label=:key_id=${keyId.toString('hex')}:key=${key.key.toString('hex')}${ofIv}`,
    ...(boxes.length > 0 ? [`--pssh=${Buffer.concat(boxes).toString('hex')}`] : []),
    ...(keyUri === undefined ? [] : ['--protection_systems=FairPlay', `--hls_key_uri=${keyUri}`]),
    // By default five seconds would stay clear.
    '--clear_lead=0',
  ];
}
