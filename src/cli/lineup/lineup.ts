/** A line-up as it is sent: what each stream and each group asks for. Bodies hold keys. */
export interface LineUp {
  readonly streams: readonly LineUpItem[];
  readonly groups: readonly LineUpItem[];
}

export interface LineUpItem {
  /** The stream id, or what a group is known by. */
  readonly name: string;
  readonly line: number | undefined;
  /** The stream ids: one, or those of a group's members. */
  readonly streamIds: readonly string[];
  /** The fields of the batch request. */
  readonly body: Readonly<Record<string, unknown>>;
}
