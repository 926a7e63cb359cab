import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { secondsOfManifest } from './playlists/dash-manifest';
import { mediaPlaylistsOf, secondsOfPlaylist } from './playlists/hls-playlists';
import { ENTRY_FILES, type System } from './shaka-packager';

/** The length of each track that shaka-packager has written to a folder, 0 for one without a segment; none before it has. */
export function writtenSeconds(folder: string, system: System): number[] {
  const textOf = (file: string) =>
    existsSync(join(folder, file)) ? readFileSync(join(folder, file), 'utf8') : '';
  const entry = textOf(ENTRY_FILES[system]);
  if (system === 'dash') return secondsOfManifest(entry);
  return mediaPlaylistsOf(entry).map((file) => secondsOfPlaylist(textOf(file)));
}
