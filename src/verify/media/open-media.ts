import { refused } from '../../drm/bytes';
import { looksLikeSegment } from '../../drm/check/segment';
import { ivOfSequence } from './decrypt';
import type { HlsEncryption, MediaTrack, Opened } from './judgement';
import { openMp4 } from './mp4-samples';
import { looksLikeTransportStream, openPackedAudio, openTransportStream } from './ts-samples';

/**
 * Reads the samples of a media segment and how they are encrypted; nothing is decrypted yet. Takes fragmented mp4 with
 * its init segment, whole mp4 files without one (ISO/IEC 14496-12, 23001-7), MPEG transport streams and packed audio
 * (RFC 8216 § 3). Hostile bytes make a fault, never an exception, and no more work than their length allows.
 *
 * @param init the init segment, where there is one; what stands in the segment itself is read behind it
 * @param hls what the playlist says: transport streams do not say themselves that they are under SAMPLE-AES, and
 *   nothing is known of a segment under AES-128 before `judgeMedia` decrypts it
 */
export function openMedia(init: Buffer | undefined, segment: Buffer, hls?: HlsEncryption): Opened {
  if (segment.length === 0) return refused('no_samples', 'The segment is empty.');
  const iv = hls?.iv ?? ivOfSequence(hls?.sequence ?? 0);
  if (hls?.method === 'AES-128') return openEncrypted(init, segment, iv);
  const foreign = foreignFormat(segment);
  if (foreign !== undefined) return refused('not_media', `The segment is ${foreign}.`);
  const encryption = hls?.method === 'SAMPLE-AES' ? { iv, isNamed: hls.iv !== undefined } : undefined;
  if (looksLikeTransportStream(segment)) return openTransportStream(segment, encryption);
  if (init || looksLikeSegment(segment)) return openMp4(init, segment);
  const audio = openPackedAudio(segment, encryption);
  if (audio) return audio;
  return refused(
    'not_media',
    'The segment is neither mp4, MPEG transport stream nor packed audio; it may be encrypted as a whole (AES-128), or an error page.',
  );
}

/** The first bytes of a header, and of a cluster (RFC 8794, RFC 9559). */
const WEBM = ['1a45dfa3', '1f43b675'];

/** What bytes in the place of media are, where that is known: `a web page, …`. */
export function foreignFormat(bytes: Buffer): string | undefined {
  const start = bytes.toString('latin1', 0, 100);
  if (/^\s*<(?:!doctype html|html|head|body)\b/i.test(start))
    return 'a web page instead of media; open its address in a browser: usually it is the error page of a server or CDN';
  if (WEBM.includes(bytes.toString('hex', 0, 4)))
    return 'WebM, whose encryption cannot be tested; test the renditions in mp4';
  return undefined;
}

function openEncrypted(init: Buffer | undefined, segment: Buffer, iv: Buffer): Opened {
  const samples = [{ data: segment, encryption: undefined }];
  const track: MediaTrack = {
    id: 0,
    kind: 'other',
    codec: 'unknown',
    scheme: 'aes-128',
    keyIds: [],
    constantIv: iv,
    samples: 1,
    encryptedSamples: 1,
    seconds: 0,
    content: { format: { codec: 'unknown' }, samples, init },
  };
  return { ok: true, value: { container: 'encrypted_segment', tracks: [track], problems: [] } };
}
