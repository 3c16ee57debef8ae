// A live figure's button puts the playground, small, in the place of the picture.
document.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("button[data-live]") : null;
    if (!button) return;
    const figure = button.closest("figure.live");
    const there = figure.querySelector("iframe");
    if (there) {
        there.remove();
        figure.classList.remove("playing");
        button.textContent = "Try it live";
        return;
    }
    const frame = document.createElement("iframe");
    frame.src = button.dataset.live;
    frame.loading = "lazy";
    frame.title = figure.querySelector("figcaption").textContent;
    figure.querySelector(".picture").after(frame);
    figure.classList.add("playing");
    button.textContent = "Back to the picture";
});
