look(chosen);
document.documentElement.dataset.ready = "true";
