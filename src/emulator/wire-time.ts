/** A time as resources carry it: ISO 8601 with microseconds and offset. */
export function wireTime(time: Date): string {
  return `${time.toISOString().slice(0, -1)}000+00:00`;
}
