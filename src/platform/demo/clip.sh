#!/bin/sh
# Makes clip.mp4, the test clip of `npm run demo`: 12 s, 640x360, 25 frames a second; H.264 High with B-frames and a
# key frame every 2 s, AAC in stereo with a beep every second. Nothing in it was recorded: ffmpeg's own sources draw it.
#
#   sh clip.sh [FILE]     writes FILE, by default clip.mp4 beside this script
#
# ffmpeg 5.1.9 of Debian 12 (libx264 164) with the fonts DejaVu gave the bytes that lie here, on one thread, because
# x264 divides its work, and with it its bits, by the number of processors.
#
# Where a test finds what it recognises:
#   y 292 to 332   seven colour bars of 80 pixels from x 40: white, yellow, cyan, green, magenta, red, blue, each at 75 %
#   y 340 to 356   the number of the frame in binary, nine squares of 16 pixels from x 40, the highest bit first
#   y 268 to 284   a white ball that moves from x 40 to x 600 once in the clip
set -eu
cd "$(dirname "$0")"
out=${1:-clip.mp4}
seconds=12

bars=""
x=40
for colour in 0xBFBFBF 0xBFBF00 0x00BFBF 0x00BF00 0xBF00BF 0xBF0000 0x0000BF; do
  bars="$bars,drawbox=x=$x:y=292:w=80:h=40:color=$colour:t=fill"
  x=$((x + 80))
done

bits=""
x=40
for bit in 256 128 64 32 16 8 4 2 1; do
  # floor(n / bit) is odd where the bit is set.
  bits="$bits,drawbox=x=$x:y=340:w=16:h=16:color=white:t=fill:enable='mod(floor(n/$bit),2)'"
  x=$((x + 16))
done

ffmpeg -hide_banner -loglevel error -nostdin -y -filter_complex_threads 1 \
  -f lavfi -i "gradients=size=640x360:rate=25:duration=$seconds:speed=0.02:seed=7:nb_colors=4:c0=0x0B1F4B:c1=0x123A6B:c2=0x1B6B78:c3=0x4A2A6A:x0=0:y0=0:x1=640:y1=360" \
  -f lavfi -i "color=black@0:size=16x16:rate=25:duration=$seconds,format=rgba,geq=r=255:g=255:b=255:a='255*clip(8.5-hypot(X-7.5,Y-7.5),0,1)'" \
  -f lavfi -i "sine=frequency=330:beep_factor=4:sample_rate=48000:duration=$seconds" \
  -filter_complex "
    [0:v]drawbox=x=40:y=275:w=560:h=2:color=white@0.35:t=fill
      ,drawbox=x=0:y=336:w=640:h=24:color=black:t=fill$bars$bits[scene];
    [scene][1:v]overlay=x='40+544*t/$seconds':y=268:shortest=1
      ,drawtext=font='DejaVu Sans':text='packager-drm-api':x=40:y=34:fontsize=22:fontcolor=white@0.85
      ,drawtext=font='DejaVu Sans':text='test clip':x=w-40-tw:y=34:fontsize=22:fontcolor=white@0.6
      ,drawtext=font='DejaVu Sans Mono':text='%{pts\:hms}':x=(w-tw)/2:y=112:fontsize=68:fontcolor=white
      ,drawtext=font='DejaVu Sans':text='frame %{n}':x=(w-tw)/2:y=206:fontsize=24:fontcolor=white@0.85
      ,drawtext=font='DejaVu Sans':text='H.264 High · AAC · 640×360 · 25 fps':x=w-40-tw:y=341:fontsize=13:fontcolor=white@0.8
      ,format=yuv420p[picture];
    [2:a]volume=0.5,aformat=channel_layouts=stereo[sound]" \
  -map '[picture]' -map '[sound]' \
  -c:v libx264 -profile:v high -preset veryslow -crf 21 -bf 3 -g 50 -keyint_min 50 -sc_threshold 0 -threads:v 1 \
  -color_primaries smpte170m -color_trc smpte170m -colorspace smpte170m \
  -c:a aac -b:a 64k -fflags +bitexact -flags:v +bitexact -flags:a +bitexact -map_metadata -1 \
  -movflags +faststart "$out"
