import type { Programs } from '../programs';
import { type RunningProgram, runProgram, secretsOfAddress } from '../running-program';

/** How long a server may send nothing before ffmpeg gives up by itself, should this process be gone. */
const SILENCE_SECONDS = 40;

/**
 * Pulls a stream of RTMP and hands it on as a transport stream, as it is. The address, which ends with a secret, goes
 * through the input of ffmpeg: arguments would show it to every user of the machine.
 */
export function pull(source: string, { ffmpeg, folder, env }: Programs): RunningProgram {
  const args = [
    ...['-hide_banner', '-nostdin', '-loglevel', 'error'],
    ...['-protocol_whitelist', 'pipe,fd,rtmp,rtmps,rtmpt,tcp,tls'],
    ...['-f', 'concat', '-safe', '0', '-i', 'pipe:0'],
    ...['-map', '0:v:0?', '-map', '0:a:0?', '-c', 'copy'],
    ...['-f', 'mpegts', '-mpegts_copyts', '0', '-flush_packets', '1', '-muxdelay', '0', 'pipe:1'],
  ];
  const program = runProgram(ffmpeg, args, { cwd: folder, env, secrets: secretsOfAddress(source) });
  program.stdin.end(
    `ffconcat version 1.0\nfile '${source}'\noption rw_timeout ${SILENCE_SECONDS * 1_000_000}\n`,
  );
  return program;
}
