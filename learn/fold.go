package learn

import "strings"

// textWidth is that of the lessons' texts.
const textWidth = 100

// fold breaks a text's lines anew, where a terminal has fewer columns than the text:
// paragraphs and points of lists. Blocks of commands and entries, tables and headings
// stay as they are. A width of 0 is unknown, and nothing is folded.
func fold(text string, width int) string {
	if width <= 0 || width >= textWidth {
		return text
	}
	var out, words []string
	hang := ""
	end := func() {
		out = append(out, wrapped(words, hang, width)...)
		words, hang = nil, ""
	}
	fenced := false
	for line := range strings.SplitSeq(text, "\n") {
		fence := strings.HasPrefix(line, "```")
		switch {
		case fenced || fence || stays(line):
			end()
			out = append(out, line)
			fenced = fenced != fence
			continue
		case strings.HasPrefix(line, "- ") || strings.HasPrefix(line, ": "):
			end()
			hang = "  "
		}
		words = append(words, strings.Fields(line)...)
	}
	end()
	return strings.Join(out, "\n")
}

// stays says whether a line outside of a block is no part of a paragraph.
func stays(line string) bool {
	return strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "    ")
}

// wrapped are words in lines of a width, all but the first with hang before them. A
// word that is longer has a line of its own.
func wrapped(words []string, hang string, width int) (lines []string) {
	line := ""
	for _, w := range words {
		switch {
		case line == "":
			line = w
		case len(line)+1+len(w) <= width:
			line += " " + w
		default:
			lines = append(lines, line)
			line = hang + w
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
