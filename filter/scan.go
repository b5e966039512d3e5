package filter

import (
	"strings"
)

// word is a token of an expression.
type word struct {
	text   string
	column int
}

// operators are the words that need no space around them, longer ones first.
var operators = []string{"&&", "||", "!=", "<=", ">=", "==", "(", ")", "!", "[", "]", "&", "|", "=", "<", ">", "+", "*", "%", "^"}

// scan cuts an expression into words. Between brackets a colon is a word too.
func scan(text string) (words []word) {
	brackets := 0
	for at := 0; at < len(text); {
		rest := text[at:]
		if strings.ContainsRune(" \t\r\n", rune(rest[0])) {
			at++
			continue
		}
		w := operator(rest)
		if w == "" && brackets > 0 && rest[0] == ':' {
			w = ":"
		}
		switch w {
		case "[":
			brackets++
		case "]":
			brackets--
		case "":
			w = rest[:plain(rest, brackets > 0)]
		}
		words = append(words, word{w, at + 1})
		at += len(w)
	}
	return words
}

// operator is the operator at the beginning of a text, or "".
func operator(text string) string {
	for _, o := range operators {
		if strings.HasPrefix(text, o) {
			return o
		}
	}
	return ""
}

// plain is the length of the name, number or address at the beginning of a text.
func plain(text string, inBrackets bool) int {
	end := " \t\r\n()[]&|!=<>+*%^"
	if inBrackets {
		end += ":"
	}
	if n := strings.IndexAny(text, end); n > 0 {
		return n
	}
	return len(text)
}
