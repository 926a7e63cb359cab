/** A secret as a snapshot shows it. */
export function masked(secret: string, reveal: boolean): string {
  return reveal ? secret : '***';
}
