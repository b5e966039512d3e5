package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/internal/version"
	"github.com/spf13/cobra"
)

// shells are the shells with a completion script.
var shells = map[string]func(root *cobra.Command, w io.Writer) error{
	"bash": bashCompletion,
	"zsh":  (*cobra.Command).GenZshCompletion,
	"fish": func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
}

// shellNames are the keys of shells, in the order of help.
var shellNames = []string{"bash", "zsh", "fish"}

func completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print a script that completes commands, flags and values by the Tab key",
		Long: `Print a script that makes a shell complete antrail's commands, flags and values. Values are tables, ports, pods,
Services, Nodes, policies, drop reasons and output forms. They come from the running agent, or from the files that
the line names (--flows, or --manifests with --node).

bash: source <(antrail completion bash), in ~/.bashrc for all shells. It needs no other package.
zsh:  antrail completion zsh >"${fpath[1]}/_antrail", once; compinit has to run.
fish: antrail completion fish >~/.config/fish/completions/antrail.fish, once.`,
		Example:   "  source <(antrail completion bash)\n  antrail completion zsh\n  antrail completion fish",
		Args:      cobra.MatchAll(exactly("a shell (bash, zsh or fish)"), knownShell),
		ValidArgs: shellNames,
		RunE: func(c *cobra.Command, args []string) error {
			return shells[args[0]](c.Root(), c.OutOrStdout())
		},
	}
}

// knownShell refuses an unknown shell.
func knownShell(_ *cobra.Command, args []string) error {
	if !slices.Contains(shellNames, args[0]) {
		return fmt.Errorf("there is no script for %q%s; there are %s", args[0], flow.Suggest(args[0], shellNames), strings.Join(shellNames, ", "))
	}
	return nil
}

// bashWords replaces a function of the package bash-completion, which many Nodes lack.
// Readline cuts words at = and :, and the function joins the parts that have no space
// between.
const bashWords = `# The package bash-completion has a better one, and replaces it.
if ! declare -F _get_comp_words_by_ref >/dev/null; then
_get_comp_words_by_ref()
{
    local rest=${COMP_LINE} i last=-1 word apart
    words=() cword=0
    for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
        word=${COMP_WORDS[i]} apart=
        while [[ ${rest} == [[:space:]]* ]]; do
            rest=${rest:1} apart=1
        done
        rest=${rest#"${word}"}
        if [[ ${last} -lt 0 || -n ${apart} ]]; then
            ((last += 1))
            words[last]=
        fi
        words[last]+=${word}
        if ((i <= COMP_CWORD)); then
            cword=${last}
        fi
    done
    cur=${words[cword]} prev=
    if ((cword > 0)); then
        prev=${words[cword-1]}
    fi
}
fi

`

// bashCompletion writes cobra's script behind that function.
func bashCompletion(root *cobra.Command, w io.Writer) error {
	var script bytes.Buffer
	script.WriteString(bashWords)
	if err := root.GenBashCompletionV2(&script, true); err != nil {
		return err
	}
	_, err := script.WriteTo(w)
	return err
}

// manCommand writes manual pages from the commands' help. It is hidden, because only
// releases and packages call it.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the manual pages, one for each command",
		Example: "  antrail man /usr/local/share/man/man1",
		Hidden:  true,
		Args:    exactly("DIR"),
		RunE: func(c *cobra.Command, args []string) error {
			return writeManPages(c.Root(), args[0])
		},
	}
}

// writeManPages writes the page of a command and those of the commands below it.
func writeManPages(c *cobra.Command, dir string) error {
	if !isDocumented(c) {
		return nil
	}
	if err := os.WriteFile(filepath.Join(dir, manName(c)+".1"), []byte(manPage(c)), 0o644); err != nil {
		return err
	}
	for _, sub := range c.Commands() {
		if err := writeManPages(sub, dir); err != nil {
			return err
		}
	}
	return nil
}

// isDocumented reports whether a command has a page: hidden ones and help have none.
func isDocumented(c *cobra.Command) bool { return !c.Hidden && c.Name() != "help" }

// manName is the name of a command's page, as antrail-lab-up.
func manName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manPage is a page in the macros of man(7).
func manPage(c *cobra.Command) string {
	var b strings.Builder
	build := version.Of()
	date, _, _ := strings.Cut(build.Date, "T")
	fmt.Fprintf(&b, ".TH %s 1 \"%s\" \"antrail %s\" \"antrail\"\n", strings.ToUpper(manName(c)), date, roff(build.Version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(manName(c)), roff(c.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(c.UseLine()))
	b.WriteString(".SH DESCRIPTION\n")
	manText(&b, cmp.Or(c.Long, c.Short+"."))
	manCommands(&b, c)
	manFlags(&b, "OPTIONS", c.NonInheritedFlags().FlagUsages())
	manFlags(&b, "OPTIONS OF ALL COMMANDS", c.InheritedFlags().FlagUsages())
	if c.Example != "" {
		b.WriteString(".SH EXAMPLES\n")
		manVerbatim(&b, strings.Split(strings.TrimRight(c.Example, "\n"), "\n"))
	}
	b.WriteString(".SH EXIT STATUS\n0 if the command is done, 1 if it failed, 2 if its arguments are wrong.\n")
	manSeeAlso(&b, c)
	return b.String()
}

// roff escapes a text for a line of a page.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\(rs`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text
}

// manText writes paragraphs; lines that begin with a blank stay as they are.
func manText(b *strings.Builder, text string) {
	for i, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		lines := strings.Split(strings.Trim(paragraph, "\n"), "\n")
		at := 0
		for at < len(lines) && !strings.HasPrefix(lines[at], " ") {
			b.WriteString(roff(lines[at]) + "\n")
			at++
		}
		if at < len(lines) {
			manVerbatim(b, lines[at:])
		}
	}
}

// manVerbatim writes lines without filling.
func manVerbatim(b *strings.Builder, lines []string) {
	b.WriteString(".nf\n")
	for _, line := range lines {
		b.WriteString(roff(line) + "\n")
	}
	b.WriteString(".fi\n")
}

// manCommands lists the commands below a command.
func manCommands(b *strings.Builder, c *cobra.Command) {
	if !c.HasAvailableSubCommands() {
		return
	}
	b.WriteString(".SH COMMANDS\n")
	for _, sub := range c.Commands() {
		if isDocumented(sub) {
			fmt.Fprintf(b, ".TP\n.BR %s (1)\n%s\n", roff(manName(sub)), roff(sub.Short))
		}
	}
}

// flagLine is a flag as in the help: its names and value, and its usage.
var flagLine = regexp.MustCompile(`(?m)^ *((?:-\S, )? *--\S+(?: \S+)?) {2,}(.*)$`)

// manFlags lists the flags that the help shows, if there are any.
func manFlags(b *strings.Builder, heading, usages string) {
	all := flagLine.FindAllStringSubmatch(usages, -1)
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", heading)
	for _, m := range all {
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(m[1]), roff(m[2]))
	}
}

// manSeeAlso names the page above and the pages below.
func manSeeAlso(b *strings.Builder, c *cobra.Command) {
	var pages []string
	if c.HasParent() {
		pages = append(pages, manName(c.Parent()))
	}
	for _, sub := range c.Commands() {
		if isDocumented(sub) {
			pages = append(pages, manName(sub))
		}
	}
	if len(pages) == 0 {
		return
	}
	b.WriteString(".SH SEE ALSO\n")
	for i, p := range pages {
		end := " ,"
		if i == len(pages)-1 {
			end = ""
		}
		fmt.Fprintf(b, ".BR %s (1)%s\n", roff(p), end)
	}
}
