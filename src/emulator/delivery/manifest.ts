/**
 * An HLS media playlist (RFC 8216) that lists no segment, because the emulator packages no media. It is there when a
 * player may have it and isn't when not, so that clients see the right answer at the right moment.
 */
export function manifest({ live }: { readonly live: boolean }): string {
  const lines = [
    '#EXTM3U',
    '#EXT-X-VERSION:5',
    '#EXT-X-TARGETDURATION:4',
    '#EXT-X-MEDIA-SEQUENCE:0',
    '# The emulator packages no media: no segment follows.',
    ...(live ? [] : ['#EXT-X-PLAYLIST-TYPE:VOD', '#EXT-X-ENDLIST']),
  ];
  return `${lines.join('\n')}\n`;
}
