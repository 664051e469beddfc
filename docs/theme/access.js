// The theme makes copy buttons and scrolled tables while the page is shown: these get names, and the keyboard reaches them.
const improve = () => {
  document.querySelector(".md-search[role=dialog]")?.setAttribute("aria-label", "Search");
  document.querySelectorAll(".md-code__nav:not([aria-label])").forEach((nav, place) =>
    nav.setAttribute("aria-label", `Code block ${place + 1}`)
  );
  document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])").forEach((box) => {
    box.tabIndex = 0;
  });
};
new MutationObserver(improve).observe(document.body, { childList: true, subtree: true });
improve();
