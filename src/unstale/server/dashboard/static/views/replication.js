// Other replicas: whom we follow, who helps, by which way copies came.

import { get } from "../api.js";
import { fill, h, table } from "../dom.js";
import { bytes, count, span } from "../format.js";

export async function replication(place, context) {
  const found = await get("/dashboard/replicas");
  if (!context.current()) return;
  const none = !found.upstream && !found.peers.length && !found.ways.length;
  fill(place, h("h1", {}, "Replication"),
    none ? h("div", { class: "card" }, h("h2", {}, "None configured"), h("p", {}, "This replica polls its sources itself and asks no other. To follow one, or to have peers help each other, name them under [replicas] in unstale.toml.")) : [
      h("dl", { class: "tiles" }, h("div", { class: "tile" }, h("dt", {}, "this replica"), h("dd", {}, h("strong", {}, found.name || "unnamed"))),
        h("div", { class: "tile" }, h("dt", {}, "follows"), h("dd", {}, h("strong", {}, found.upstream || "nobody")))),
      h("h2", {}, "Peers"),
      table("Peers", ["Peer", "Contacts", "It was ahead", "It confirmed ours", "Failed", "Doubts", "Received", "State"], found.peers.map((peer) => [
        peer.address, count(peer.contacts), count(peer.taken), count(peer.confirmed), count(peer.failed), count(peer.doubts), bytes(peer.received ?? 0),
        peer.resting > 0 ? h("span", { class: "bad" }, `rests for ${span(peer.resting)}: ${peer.reason}`) : "asked in turn",
      ]), "No peers."),
      h("h2", {}, "The ways copies came"),
      table("Ways of copies", ["From the source", "Of the newest copies"], found.ways.map((way) => [
        [...way.way, found.name || "here"].join(" → "), count(way.copies)]), "All came from their sources directly."),
    ]);
}
