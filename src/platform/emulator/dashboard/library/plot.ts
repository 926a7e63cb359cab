import { type Html, html } from '../../../../http/html';

interface Plot {
  /** For who does not see it. */
  readonly title: string;
  /** Oldest first, without gaps. */
  readonly days: readonly { readonly date: string; readonly value: number }[];
  /** How a value is written. */
  readonly said: (value: number) => string;
  /** What round values are: those of our digits, or of clocks. */
  readonly unit: 'decimal' | 'seconds';
}

const HEIGHT = 100;
/** With more days, bars would be too thin to be told apart. */
const MOST_BARS = 120;

/**
 * Bars over days, or an area when there are many. The words stand beside the picture, as they must not be stretched with
 * it; its table is for who can't see it.
 */
export function plot({ title, days, said, unit }: Plot): Html {
  const top = roundUp(Math.max(...days.map(({ value }) => value), 1), unit);
  const heightOf = (value: number) => Math.round((HEIGHT * 1000 * value) / top) / 1000;
  const highest = days.reduce((before, day) => (day.value > before.value ? day : before));
  const bar = ({ date, value }: (typeof days)[number], place: number) => {
    const height = heightOf(value);
    // The place of a day is wide enough to be pointed at, however low its bar is.
    return html`<g><title>${date}: ${said(value)}</title><rect class="plot-day" x="${place}" y="0" width="1" height="${HEIGHT}"/>${
      days.length <= MOST_BARS &&
      html`<rect class="plot-bar" x="${place + 0.1}" y="${HEIGHT - height}" width="0.8" height="${height}"/>`
    }</g>`;
  };
  const area =
    days.length > MOST_BARS &&
    html`<path class="plot-area" d="M0 ${HEIGHT}${days.map(({ value }, place) => ` L${place + 0.5} ${HEIGHT - heightOf(value)}`).join('')} L${days.length} ${HEIGHT} Z"/>`;
  const middle = days[Math.floor(days.length / 2)];
  return html`<div class="plot">
    <div class="plot-scale" aria-hidden="true"><span>${said(top)}</span><span>${said(top / 2)}</span><span>0</span></div>
    <svg class="plot-picture" viewBox="0 0 ${days.length} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${title}. The most on one day: ${said(highest.value)}, on ${highest.date}.">
      <path class="plot-lines" d="M0 0.5H${days.length}M0 ${HEIGHT / 2}H${days.length}M0 ${HEIGHT - 0.5}H${days.length}"/>
      ${area}${days.map(bar)}
    </svg>
    <div class="plot-days" aria-hidden="true"><span>${days[0]?.date}</span>${days.length > 2 && html`<span>${middle?.date}</span>`}<span>${days.at(-1)?.date}</span></div>
  </div>`;
}

const CLOCK = [2, 10, 20, 60, 120, 600, 1200, 3600, 7200, 14_400, 43_200, 86_400];

/** The least round value that is not below this one, and whose half is round as well. */
function roundUp(value: number, unit: Plot['unit']): number {
  const ofClock = unit === 'seconds' ? CLOCK.find((round) => round >= value) : undefined;
  if (ofClock !== undefined) return ofClock;
  const power = 10 ** Math.floor(Math.log10(value));
  // A half thing is none.
  const factors = power === 1 ? [2, 4, 6, 8, 10] : [1, 2, 3, 4, 5, 6, 8, 10];
  return (factors.find((each) => each * power >= value) ?? 10) * power;
}
