package learn

import "strings"

// textWidth is the width of the lessons' texts, in columns.
const textWidth = 100

// fold folds paragraphs and list items for a terminal with fewer columns than the text.
// Blocks of commands and entries, tables and headings stay as they are. With a width of 0,
// which is unknown, nothing is folded.
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

// stays says whether a line outside of a block is not part of a paragraph.
func stays(line string) bool {
	return strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "    ")
}

// wrapped are words in lines of a width. All lines but the first begin with hang. A longer
// word has a line of its own.
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
