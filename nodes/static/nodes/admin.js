/* Copy buttons, countdowns, pages that stay fresh, and the values under the pointer. No eval, no inline code, no network but our own. */
(() => {
    "use strict";

    const span = (seconds) => {
        const s = Math.floor(Math.abs(seconds));
        if (s < 60) return `${s} s`;
        if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
        return s < 86400 ? `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min` : `${Math.floor(s / 86400)} d`;
    };

    const copyWithoutClipboard = (source) => {
        const range = document.createRange();
        range.selectNodeContents(source);
        const selection = window.getSelection();
        selection.removeAllRanges();
        selection.addRange(range);
        return document.execCommand("copy");
    };

    document.addEventListener("click", async (event) => {
        const button = event.target.closest("[data-copy]");
        if (!button) return;
        const source = document.getElementById(button.dataset.copy);
        const said = button.querySelector("[data-said]");
        let copied = true;
        try {
            await navigator.clipboard.writeText(source.textContent);
        } catch {
            copied = copyWithoutClipboard(source); /* plain HTTP has no clipboard API */
        }
        said.textContent = copied ? "Copied" : "Press Ctrl-C";
        setTimeout(() => { said.textContent = "Copy"; }, 2000);
    });

    /* One click makes one thing. */
    document.addEventListener("submit", (event) => {
        if (!event.target.matches("[data-once]")) return;
        for (const button of event.target.querySelectorAll("button[type=submit]")) setTimeout(() => { button.disabled = true; });
    });
    window.addEventListener("pageshow", () => {
        for (const button of document.querySelectorAll("[data-once] button[disabled]")) button.disabled = false;
    });

    const countDown = () => {
        for (const element of document.querySelectorAll("[data-until]")) {
            const left = (new Date(element.dataset.until) - Date.now()) / 1000;
            element.textContent = left > 0 ? `in ${span(left)}` : "expired";
        }
    };

    /* Pages that tell the present are read again; a failed reading is said, never hidden behind old figures. */
    const refresh = async () => {
        const live = document.getElementById("live");
        const busy = document.hidden || !live || window.getSelection().toString() || live.querySelector("details[open], .mf-tip");
        if (busy) return;
        let note = document.querySelector(".mf-stopped-live");
        try {
            const response = await fetch(window.location.href, { headers: { "X-Requested-With": "XMLHttpRequest" }, redirect: "error" });
            if (!response.ok) throw new Error(String(response.status));
            const fresh = new DOMParser().parseFromString(await response.text(), "text/html").getElementById("live");
            if (!fresh) throw new Error("not the page");
            live.replaceChildren(...fresh.childNodes);
            live.dataset.readAt = String(Date.now());
            note?.remove();
        } catch {
            if (!note) {
                note = document.createElement("div");
                note.className = "mf-stopped-live";
                note.setAttribute("role", "status");
                document.body.append(note);
            }
            const readAt = Number(live.dataset.readAt || performance.timeOrigin);
            note.textContent = `Not refreshed for ${span((Date.now() - readAt) / 1000)}`;
        }
    };

    /* The values under the pointer. */
    const forget = (canvas) => { for (const mark of canvas.querySelectorAll(".mf-hair, .mf-tip")) mark.remove(); };
    const valueAt = (line, instant, step, reach) => {
        let best = null;
        for (const [at, value] of line.points) {
            if (step) { if (at <= instant) best = [at, value]; else break; }
            else if (Math.abs(at - instant) <= reach && (!best || Math.abs(at - instant) < Math.abs(best[0] - instant))) best = [at, value];
        }
        return best;
    };
    const point = (canvas, event) => {
        const picture = (canvas.picture ??= JSON.parse(canvas.dataset.picture));
        const box = canvas.getBoundingClientRect();
        const share = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
        const instant = picture.since + share * (picture.until - picture.since);
        const found = picture.lines.map((line) => [line.label, valueAt(line, instant, picture.step, (picture.until - picture.since) / 50)]);
        forget(canvas);
        if (!found.some(([, hit]) => hit && hit[1] !== null)) return;
        const at = new Date((picture.step ? instant : found.find(([, hit]) => hit)[1][0]) * 1000);
        const words = found.map(([label, hit]) => `${label}: ${hit && hit[1] !== null ? `${hit[1]} ${picture.unit}`.trim() : "—"}`);
        const hair = document.createElement("span");
        hair.className = "mf-hair";
        hair.style.left = `${share * 100}%`;
        const tip = document.createElement("span");
        tip.className = "mf-tip";
        tip.textContent = [`${at.toISOString().slice(0, picture.until - picture.since < 7200 ? 19 : 16).replace("T", " ")} UTC`, ...words].join("\n");
        tip.style[share < 0.5 ? "left" : "right"] = `${(share < 0.5 ? share : 1 - share) * box.width + 8}px`;
        canvas.append(hair, tip);
    };
    document.addEventListener("pointermove", (event) => {
        const canvas = event.target.closest?.(".mf-canvas");
        for (const other of document.querySelectorAll(".mf-canvas")) if (other !== canvas && other.querySelector(".mf-tip")) forget(other);
        if (canvas) point(canvas, event);
    });
    document.addEventListener("pointerleave", () => document.querySelectorAll(".mf-canvas").forEach(forget));

    document.addEventListener("DOMContentLoaded", () => {
        countDown();
        setInterval(countDown, 1000);
        const live = document.getElementById("live");
        if (live) setInterval(refresh, Number(live.dataset.live) * 1000);
    });
})();
