/** The programs that the packager runs, and what they run with. */
export interface Programs {
  /** A path, or a name to look for in PATH. */
  readonly ffmpeg: string;
  readonly shakaPackager: string;
  /** All variables that they get. */
  readonly env: Readonly<Record<string, string>>;
  /** Where they run. */
  readonly folder: string;
}
