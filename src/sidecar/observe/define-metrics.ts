import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

export type Readings = Readonly<Record<string, number | undefined>>;

/** Defines the sidecar's own metrics in a registry, under names that begin alike. */
export interface Define {
  counter<Label extends string>(name: string, help: string, ...labels: Label[]): Counter<Label>;
  /** Of seconds. */
  histogram<Label extends string>(
    name: string,
    help: string,
    buckets: readonly number[],
    ...labels: Label[]
  ): Histogram<Label>;
  /** Is set when there is something to set. */
  gauge<Label extends string>(name: string, help: string, ...labels: Label[]): Gauge<Label>;
  /** Is read at the scrape; absent while there is no value. */
  read(name: string, help: string, value: () => number | undefined): void;
  /** The same for the values of one label. */
  readEach(name: string, help: string, label: string, values: () => Readings): void;
  /** A counter that something else keeps. */
  readCounter(name: string, help: string, value: () => number): void;
  /** The same for the values of one label. */
  readCounters(
    name: string,
    help: string,
    label: string,
    values: () => Readonly<Record<string, number>>,
  ): void;
}

export function defineIn(registry: Registry): Define {
  const described = <Label extends string>(name: string, help: string, labelNames: Label[] = []) => ({
    name: `packagerdrmapi_${name}`,
    help,
    labelNames,
    registers: [registry],
  });
  return {
    counter: (name, help, ...labels) => new Counter(described(name, help, labels)),
    histogram: (name, help, buckets, ...labels) =>
      new Histogram({ ...described(name, help, labels), buckets: [...buckets] }),
    gauge: (name, help, ...labels) => new Gauge(described(name, help, labels)),
    read(name, help, value) {
      new Gauge({
        ...described(name, help),
        collect() {
          const present = value();
          if (present === undefined) this.remove();
          else this.set(present);
        },
      });
    },
    readEach(name, help, label, values) {
      new Gauge({
        ...described(name, help, [label]),
        collect() {
          this.reset();
          for (const [of, value] of Object.entries(values()))
            if (value !== undefined) this.set({ [label]: of }, value);
        },
      });
    },
    readCounter(name, help, value) {
      new Counter({
        ...described(name, help),
        collect() {
          this.reset();
          this.inc(value());
        },
      });
    },
    readCounters(name, help, label, values) {
      new Counter({
        ...described(name, help, [label]),
        collect() {
          this.reset();
          for (const [of, count] of Object.entries(values())) this.inc({ [label]: of }, count);
        },
      });
    },
  };
}
