// The theme's buttons that open a part of the menu have no name for screen readers.
document.addEventListener("DOMContentLoaded", () => {
  for (const button of document.querySelectorAll("nav summary")) {
    button.setAttribute("aria-label", "Show the pages of this part");
  }
});
