/** The command that streams a test picture and a tone to a channel over RTMP. */
export function ffmpegLine(rtmpAddress: string, streamKey: string): string {
  return [
    'ffmpeg -re -f lavfi -i testsrc2=size=1280x720:rate=30',
    '-f lavfi -i sine=frequency=440:sample_rate=48000',
    '-c:v libx264 -preset veryfast -pix_fmt yuv420p -g 60 -b:v 2500k',
    '-c:a aac -b:a 128k',
    `-f flv '${rtmpAddress}/${streamKey}'`,
  ].join(' \\\n  ');
}

/** The command that connects a simulated encoder through the control port. */
export function simulatedEncoderLine(controlAddress: string, streamKey: string): string {
  return [
    `curl -sS ${controlAddress}/encoder/connect`,
    "-H 'content-type: application/json'",
    `-d '${JSON.stringify({ stream_key: streamKey })}'`,
  ].join(' \\\n  ');
}
