"""How a report looks: on a phone, on a desk, at night, on paper."""

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #fdfdfb; --ink: #1d2226; --soft: #59626a; --faint: #b4bbc0; --line: #e1e4e2;
  --panel: #f4f5f2; --accent: #0b5d8a;
  --series-1: #0b6aa6; --series-2: #c2500a; --series-3: #18794e; --series-4: #8e4585;
  --series-5: #8a6d00; --series-6: #5b5fc7; --series-7: #b3325c; --series-8: #5f6b73;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #15181a; --ink: #e3e6e4; --soft: #a3acb1; --faint: #5f696f; --line: #2d3337;
    --panel: #1d2124; --accent: #7cc0ea;
    --series-1: #62b4e8; --series-2: #f29a5c; --series-3: #5cc596; --series-4: #d59acb;
    --series-5: #d9bd55; --series-6: #a5a8f5; --series-7: #ee8aa9; --series-8: #b0bac0;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 2.5rem 1.25rem 4rem; max-width: 60rem;
  background: var(--paper); color: var(--ink);
  font: 1rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
}
h1 { font-size: 1.75rem; line-height: 1.25; font-weight: 650; margin: 0 0 .25rem; }
h2 { font-size: 1.3rem; line-height: 1.3; font-weight: 650; margin: 3.25rem 0 .5rem; }
h3 { font-size: 1.02rem; font-weight: 650; margin: 1.75rem 0 .4rem; }
h1, h2, h3, p, dd, td, th, li { overflow-wrap: break-word; }
p { max-width: 58rem; margin: .6rem 0; }
.lead { font-size: 1.1rem; line-height: 1.6; margin: 1.4rem 0; }
.soft, caption, figcaption, .note { color: var(--soft); font-size: .875rem; line-height: 1.5; }
nav { margin: 1.2rem 0 0; font-size: .94rem; }
nav a { margin-right: 1.1rem; white-space: nowrap; }
a { color: var(--accent); text-underline-offset: .15em; }
.scroll { overflow-x: auto; margin: 1.1rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
caption { text-align: left; padding-bottom: .45rem; }
th, td { padding: .36rem .9rem .36rem 0; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
thead th { font-weight: 600; border-bottom: 1.5px solid var(--ink); vertical-align: bottom; }
tbody th { font-weight: 500; }
tbody td, tbody th { border-bottom: 1px solid var(--line); }
td b, td.first { font-weight: 700; }
td .spread { color: var(--soft); font-weight: 400; font-size: .86em; }
.sets td:nth-child(2) { text-align: left; }
.words th { text-align: left; }
.words td { text-align: left; white-space: normal; overflow-wrap: anywhere; min-width: 9rem; }
.words th { vertical-align: top; }
.pictures {
  display: grid; gap: 1.4rem 1.75rem; margin: 1.4rem 0;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr));
}
.pictures.small { grid-template-columns: repeat(auto-fill, minmax(min(100%, 16rem), 1fr)); }
figure { margin: 0; break-inside: avoid; }
figure svg { display: block; width: 100%; max-width: 27rem; height: auto; }
figure svg text { font-family: inherit !important; }
pre {
  background: var(--panel); border: 1px solid var(--line); border-radius: 6px;
  padding: .8rem 1rem; white-space: pre-wrap; overflow-wrap: anywhere;
  font: .875rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
}
summary { cursor: pointer; }
.methods {
  display: grid; gap: 0 2.5rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr));
}
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
@media print {
  :root {
    color-scheme: light;
    --paper: #fff; --ink: #111; --soft: #444; --faint: #999; --line: #ccc; --panel: #f5f5f5;
    --accent: #111;
    --series-1: #0b6aa6; --series-2: #c2500a; --series-3: #18794e; --series-4: #8e4585;
    --series-5: #8a6d00; --series-6: #5b5fc7; --series-7: #b3325c; --series-8: #5f6b73;
  }
  @page { margin: 16mm; }
  body { padding: 0; max-width: none; font-size: 10pt; }
  nav { display: none; }
  h2, h3, caption { break-after: avoid; }
  tr, figure, pre { break-inside: avoid; }
  .scroll { overflow: visible; }
  .pictures { grid-template-columns: repeat(2, 1fr); }
  .pictures.small { grid-template-columns: repeat(3, 1fr); }
  th, td { padding-right: .6rem; }
}
"""
