/**
 * Answers what belongs to a name, made at its first use. At most `most` names have something of their own; whatever
 * comes after them shares what belongs to `other`.
 */
export function bounded<Name, Value>(
  most: number,
  other: NoInfer<Name>,
  make: (name: Name) => Value,
): (name: Name) => Value {
  const made = new Map<Name, Value>();
  const take = (name: Name): Value => {
    const present = made.get(name);
    if (present !== undefined) return present;
    if (made.size >= most && name !== other) return take(other);
    const value = make(name);
    made.set(name, value);
    return value;
  };
  return take;
}
