"""What all views share: colours, numbers and phrases, templates of HTML, text that is safe in a terminal."""
