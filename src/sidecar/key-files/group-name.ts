import type { Finding } from '../../drm/cross-check';

/** What is odd about a stream id that names a group of streams: the key file is written, and never read. */
export function groupNameFindings(streamId: string): Finding[] {
  if (!/\.smil$/i.test(streamId)) return [];
  const description =
    'The packager reads no key file of a group (.smil); each of its member streams needs its own, and a group of a batch or of a line-up writes them all';
  return [{ severity: 'warning', code: 'group_name', description }];
}
