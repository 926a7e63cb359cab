/** An object as JSON has them. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Whether a value is one: neither null nor a list. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
