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
  const iv = hls?.iv ?? ivOfSequence(hls?.sequence ?? 0);
  if (hls?.method === 'AES-128') return openEncrypted(init, segment, iv);
  const encryption = hls?.method === 'SAMPLE-AES' ? { iv, isNamed: hls.iv !== undefined } : undefined;
  if (looksLikeTransportStream(segment)) return openTransportStream(segment, encryption);
  if (init || looksLikeSegment(segment)) return openMp4(init, segment);
  const audio = openPackedAudio(segment, encryption);
  if (audio) return audio;
  const description =
    segment.length === 0
      ? 'The segment is empty.'
      : 'The segment is neither mp4, MPEG transport stream nor packed audio; it may be encrypted as a whole (AES-128), or an error page.';
  return { ok: false, fault: { code: segment.length === 0 ? 'no_samples' : 'not_media', description } };
}

function openEncrypted(init: Buffer | undefined, segment: Buffer, iv: Buffer): Opened {
  if (segment.length === 0) {
    return { ok: false, fault: { code: 'no_samples', description: 'The segment is empty.' } };
  }
  const samples = [{ data: segment, encryption: undefined }];
  const track: MediaTrack = {
    id: 0,
    kind: 'other',
    codec: 'unknown',
    scheme: 'aes-128',
    keyIds: [],
    defaultKeyId: undefined,
    constantIv: iv,
    pattern: undefined,
    samples: 1,
    encryptedSamples: 1,
    seconds: 0,
    content: { format: { codec: 'unknown' }, samples, init },
  };
  return { ok: true, media: { container: 'encrypted_segment', tracks: [track], slips: [] } };
}
