"use strict";
(function () {
  const report = JSON.parse(document.getElementById("tamis-report").textContent);
  const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const number = value => value === null || value === undefined ? "" :
    value === 0 || (Math.abs(value) >= 1e-3 && Math.abs(value) < 1e6) ? String(+value.toPrecision(6)) : (+value.toPrecision(4)).toExponential();
  const colours = ["--c1", "--c2", "--c3", "--c4", "--c5"];
  const dashes = { line: [], dashes: [8, 4], dots: [2, 4], joined: [] };

  function options(chart, place) {
    const ink = css("--ink"), line = css("--line");
    const decades = (_, splits) => splits.map(tick => Number.isInteger(+Math.log10(tick).toFixed(9)) ? tick : null);
    const axis = (label, log) => { const only = log ? { filter: decades } : {}; return {
      stroke: ink, grid: { stroke: line, width: 1, ...only }, ticks: { stroke: line, ...only }, label, labelSize: 20,
      font: "12px system-ui", labelFont: "12px system-ui", size: 58,
      values: (_, ticks) => ticks.map(tick => tick === null ? "" : number(tick)),
      ...only,
    }; };
    const whole = !chart.log_x && chart.x.every(Number.isInteger) ? { incrs: [...Array(30).keys()].map(k => [1, 2, 5][k % 3] * 10 ** Math.floor(k / 3)) } : {};
    const series = chart.series.map((one, k) => {
      const stroke = css(colours[k % 5]);
      const base = { label: one.name, stroke, width: 2, dash: dashes[one.style] || [], spanGaps: one.style === "joined", points: { show: one.style === "points" || one.style === "joined", size: one.style === "points" ? 11 : 6, fill: stroke }, value: (_, v) => number(v) };
      if (one.style === "joined") base.dash = [[], [8, 4], [2, 4], [12, 3, 2, 3], []][k % 5];
      if (one.style === "bars") Object.assign(base, { paths: uPlot.paths.bars({ size: [1, 100] }), fill: stroke, width: 0 });
      if (one.style === "points") base.paths = () => null;
      return base;
    });
    const bars = chart.series.some(one => one.style === "bars");
    const scale = log => log ? { distr: 3 } : {};
    return {
      width: place.clientWidth, height: 250, cursor: { y: false },
      scales: { x: { time: false, ...scale(chart.log_x), ...range(chart) }, y: bars && !chart.log_y ? { range: (_, low, high) => [Math.min(0, low), high * 1.05 || 1] } : scale(chart.log_y) },
      axes: [{ ...axis(chart.x_label, chart.log_x), size: 34, ...whole }, axis(chart.y_label, chart.log_y)],
      series: [{ label: chart.x_label, value: (_, v) => number(v) }, ...series],
      hooks: { draw: [plot => marks(plot, chart)] },
    };
  }

  function range(chart) {
    const all = [...chart.x, ...chart.marks.map(mark => mark[0])];
    let low = Math.min(...all), high = Math.max(...all);
    if (low === high && chart.log_x) return { min: low / 2, max: high * 2 };
    if (low === high) { low -= 1; high += 1; }
    const half = chart.log_x ? 0 : (high - low) / (2 * Math.max(chart.x.length, 2));
    return { min: low - half, max: high + half };
  }

  function marks(plot, chart) {
    const draw = plot.ctx;
    draw.save();
    draw.strokeStyle = draw.fillStyle = css("--bad");
    draw.lineWidth = 2 * devicePixelRatio;
    draw.setLineDash([6, 4]);
    for (const [x] of chart.marks) {
      const at = plot.valToPos(x, "x", true);
      draw.beginPath(); draw.moveTo(at, plot.bbox.top); draw.lineTo(at, plot.bbox.top + plot.bbox.height); draw.stroke();
    }
    draw.restore();
  }

  const plots = [];
  function plot(place) {
    const chart = report.datasets[place.dataset.variable].charts[place.dataset.chart];
    place.textContent = "";
    const settings = options(chart, place);
    const { min, max } = settings.scales.x;
    delete settings.scales.x.min; delete settings.scales.x.max;
    settings.scales.x.range = (_, low, high) => low === null || (low <= chart.x[0] && high >= chart.x[chart.x.length - 1]) ? [min, max] : [low, high];
    // What is smaller than rounding is not drawn; an axis with more decades is not either.
    const least = 1e-18 * Math.max(...chart.series.flatMap(one => one.values.filter(value => value !== null)));
    return new uPlot(settings, [chart.x, ...chart.series.map(one => chart.log_y ? one.values.map(value => value > least ? value : null) : one.values)], place);
  }
  function draw(place) {
    const known = plots.findIndex(each => each[0] === place);
    if (known >= 0) { plots[known][1].destroy(); plots.splice(known, 1); }
    plots.push([place, plot(place)]);
  }
  const places = [...document.querySelectorAll(".plot")];
  const seen = new IntersectionObserver(entries => entries.forEach(entry => {
    if (entry.isIntersecting) { seen.unobserve(entry.target); draw(entry.target); }
  }), { rootMargin: "600px" });
  places.forEach(place => seen.observe(place));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plots.slice().forEach(each => draw(each[0])));
  let waiting;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(() => plots.forEach(([place, chart]) => chart.setSize({ width: place.clientWidth, height: 250 })), 150); });
  addEventListener("beforeprint", () => places.filter(place => !plots.some(each => each[0] === place)).forEach(draw));

  document.querySelectorAll("details.numbers").forEach(box => box.addEventListener("toggle", () => {
    if (!box.open || box.querySelector("table")) return;
    const chart = report.datasets[box.dataset.variable].charts[box.dataset.chart];
    const table = document.createElement("table"), head = table.createTHead().insertRow();
    for (const name of [chart.x_label, ...chart.series.map(one => one.name)]) {
      const cell = document.createElement("th"); cell.scope = "col"; cell.textContent = name; head.append(cell);
    }
    const body = table.createTBody();
    chart.x.forEach((x, k) => {
      const row = body.insertRow();
      [x, ...chart.series.map(one => one.values[k])].forEach(value => { row.insertCell().textContent = number(value); });
    });
    const wide = document.createElement("div");
    wide.className = "wide"; wide.tabIndex = 0; wide.setAttribute("role", "region"); wide.setAttribute("aria-label", `${report.datasets[box.dataset.variable].path}: ${chart.title}, numbers`);
    wide.style.maxHeight = "24rem"; wide.style.overflow = "auto";
    wide.append(table); box.append(wide);
  }));

  document.querySelectorAll("figure.map").forEach(figure => {
    const swipe = figure.querySelector("input[type=range]"), blink = figure.querySelector("button");
    const second = figure.querySelector(".second"), said = figure.querySelector("output");
    if (!swipe) return;
    let timer = 0, state = false;
    const show = share => { second.style.clipPath = `inset(0 0 0 ${share}%)`; };
    const stop = () => { clearInterval(timer); timer = 0; blink.setAttribute("aria-pressed", "false"); said.textContent = ""; show(swipe.value); };
    swipe.addEventListener("input", () => { stop(); show(swipe.value); });
    blink.addEventListener("click", () => {
      if (timer) return stop();
      blink.setAttribute("aria-pressed", "true");
      timer = setInterval(() => { state = !state; show(state ? 0 : 100); said.textContent = state ? "compressed" : "original"; }, 700);
    });
    show(swipe.value);
  });
})();
