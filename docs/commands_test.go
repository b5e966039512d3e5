package docs

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// section is a command of commands.md; its flags are the rows up to the next one.
	section = regexp.MustCompile(`(?m)^## (antrail.*)$`)
	flagRow = regexp.MustCompile("(?m)^\\| (?:`-(\\w)`, )?`--([\\w-]+)` \\|")
	// inline is a command in the text of a page; a block of commands has one on a line.
	inline     = regexp.MustCompile("`(?:bin/)?(antrail [^`\n]+)`")
	commandFor = regexp.MustCompile(`(?m)^(?:[^|#\n]*[ (])?(?:bin/)?(antrail [a-z][^|)&;#>\n]*)`)
	codeBlock  = regexp.MustCompile("(?ms)^```(?:sh|text|cluster)?\n(.*?)^```")
)

// commandFlags returns the flags of each command of commands.md, which is made of the
// program's own help.
func commandFlags(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("commands.md")
	if err != nil {
		t.Fatal(err)
	}
	all, at := map[string][]string{}, section.FindAllStringSubmatchIndex(string(text), -1)
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		flags := []string{"--help", "-h"}
		for _, f := range flagRow.FindAllStringSubmatch(string(text[m[1]:end]), -1) {
			flags = append(flags, "--"+f[2])
			if f[1] != "" {
				flags = append(flags, "-"+f[1])
			}
		}
		all[string(text[m[2]:m[3]])] = flags
	}
	return all
}

// TestCommandsOfPagesExist: each command that a page names is one, and has the flags that
// stand there.
func TestCommandsOfPagesExist(t *testing.T) {
	known, named := commandFlags(t), 0
	for page, text := range pages(t) {
		if page == "docs/commands.md" || strings.HasPrefix(page, "docs/pipeline/") {
			continue
		}
		var lines []string
		for _, m := range inline.FindAllStringSubmatch(text, -1) {
			lines = append(lines, m[1])
		}
		for _, block := range codeBlock.FindAllStringSubmatch(text, -1) {
			for _, m := range commandFor.FindAllStringSubmatch(block[1], -1) {
				lines = append(lines, m[1])
			}
		}
		for _, line := range lines {
			named++
			if fault := commandFault(known, line); fault != "" {
				t.Errorf("%s: %s: %s", page, line, fault)
			}
		}
	}
	if named < 100 {
		t.Errorf("only %d commands are named", named)
	}
}

// commandFault says what is wrong with a command line, or "".
func commandFault(known map[string][]string, line string) string {
	line, _, _ = strings.Cut(line, " | ") // to another program
	words := strings.Fields(line)
	path, n := words[0], 1
	for n < len(words) && known[path+" "+words[n]] != nil {
		path, n = path+" "+words[n], n+1
	}
	if n == 1 && regexp.MustCompile(`^[a-z][a-z-]*$`).MatchString(words[1]) {
		return "there is no such command"
	}
	for _, word := range words[n:] {
		flag, _, _ := strings.Cut(word, "=")
		if flag == "--" {
			break
		}
		if regexp.MustCompile(`^--?[a-zA-Z][\w-]*$`).MatchString(flag) && n > 1 && !slices.Contains(known[path], flag) {
			return path + " has no flag " + flag
		}
	}
	return ""
}
