"use strict";
// The page of `ketrag graph --html`: one view is all there is, and exploring shows parts of it.
const whole = data(at("graph-data").textContent);
const panel = new GraphPanel(at("graph-root"), {
  graphs: [whole.graph],
  async load(request) { return pictureIn(whole, request); },
  async read() { return []; },
});
panel.show(whole);
