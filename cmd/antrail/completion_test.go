//go:build linux && !portable

package main

import (
	"bytes"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/answer"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// completed are the words that the program completes the last of args to, without their
// meanings.
func completed(t *testing.T, args ...string) (all []string) {
	t.Helper()
	var out, said bytes.Buffer
	if code := run(append([]string{cobra.ShellCompRequestCmd}, args...), &out, &said); code != 0 {
		t.Fatalf("%q: exit code %d\n%s", args, code, said.String())
	}
	for line := range strings.Lines(out.String()) {
		word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !strings.HasPrefix(word, ":") {
			all = append(all, word)
		}
	}
	return all
}

// TestCompletes: values come from the files that the line names.
func TestCompletes(t *testing.T) {
	t.Setenv("ANTRAIL_LAB_DIR", t.TempDir())
	t.Setenv(socketEnv, t.TempDir()+"/none.sock")
	for _, s := range []struct {
		line, want string // all words
	}{
		{"dump-f", "dump-flows"},
		{"completion ", "bash zsh fish"},
		{"dump-flows " + seedFiles + " Egress", "EgressMark EgressRule EgressDefaultRule EgressMetric"},
		{"dump-flows " + seedFiles + " EgressMark ", ""},
		{"dump-flows --no-", "--no-names --no-stats"},
		{"dump-ports " + nodeFiles + " we", "web-a"},
		{"get po", "policies pods"},
		{"get pods --manifests examples/web-app --node ", "node-a node-b"},
		{"drops --reason ct_f", "ct_full"},
		{"why --manifests examples/web-app default/client", "default/client-a default/client-b"},
		{"why --manifests examples/web-app default/client-a svc:default/web-", "svc:default/web-a-only svc:default/web-b-only"},
		{"explain " + webApp + " --node node-a Service/default/web-", "Service/default/web-a-only Service/default/web-b-only"},
		{"get pods -n default " + webApp + " --node node-a we", "web-a"},
		{"get pods " + webApp + " --node node-a default/web-a ", "default/client-a default/db-a"},
		{"get pods " + webApp + " --node node-a -n ", "default"},
		{"dump-flows --service ", ""},
		{"dump-flows " + webApp + " --node node-a --service default/web-", "default/web-a-only default/web-b-only"},
		{"dump-flows -O ", "OpenFlow15 OpenFlow10"},
		{"pipeline " + nodeFiles + " --focus SN", "SNAT SNATMark"},
		{"pipeline -o ", strings.Join(mapForms, " ")},
		{"drops --pod ", ""}, // nobody answers
		{"drops --last ", ""},
		{"version ", ""},
		{"learn 1 ch", "check"},
		{"bench compare ", ""},
	} {
		want := strings.Fields(s.want)
		got := completed(t, strings.Split(s.line, " ")...)
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", s.line, got, want)
		}
	}
}

// runningAgent serves the answers of an agent with the policies of examples/web-app at a
// socket, and makes it the one that commands ask.
func runningAgent(t *testing.T) {
	t.Helper()
	p, err := pipeline.Manifests{Path: "examples/web-app", Node: "node-a"}.Load(pipeline.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	dir, err := os.MkdirTemp("", "agent") // shorter than a test's own: sockets have short names
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	ln, err := net.Listen("unix", dir+"/agent.sock")
	if err != nil {
		t.Fatal(err)
	}
	answers := answer.New(p)
	server := &http.Server{Handler: answers.Routes(answer.Registry(answers))}
	go server.Serve(ln)
	t.Cleanup(func() { server.Close() })
	t.Setenv(socketEnv, ln.Addr().String())
}

// TestCompletesFromAgent: without files on the line, values come from the running agent, and
// drop reasons from the program.
func TestCompletesFromAgent(t *testing.T) {
	t.Setenv("ANTRAIL_LAB_DIR", t.TempDir())
	runningAgent(t)
	for line, want := range map[string]string{
		"dump-flows --policy ":            "default/db-from-web default/web-app-db-network-policy ingress-allow-http-request-to-api-v2 web-app-db-network-policy",
		"dump-flows --policy=default/db-": "default/db-from-web",
		"dump-flows --service default/we": "default/web-a-only default/web-b-only",
		"drops --reason ct_nat":           "ct_nat_exhausted",
	} {
		got := completed(t, strings.Split(line, " ")...)
		slices.Sort(got)
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%q: %q, want %q", line, text, want)
		}
	}
}

// TestEveryValueCompletes: what flagWords, fileFlags and argWords name is there, and no flag
// completes to files that takes none.
func TestEveryValueCompletes(t *testing.T) {
	began := false
	root := rootCommand(&began)
	flags, commands := map[string]bool{}, map[string]bool{}
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		path := strings.TrimSpace(strings.TrimPrefix(c.CommandPath(), "antrail"))
		commands[path] = true
		c.Flags().VisitAll(func(f *pflag.Flag) {
			flags["--"+f.Name], flags[path+" --"+f.Name] = true, true
			if _, has := c.GetFlagCompletionFunc(f.Name); !has && !slices.Contains(fileFlags, f.Name) {
				t.Errorf("antrail %s --%s completes to files", path, f.Name)
			}
		})
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(root)
	for name := range flagWords {
		if !flags[name] {
			t.Errorf("flagWords: there is no flag %s", name)
		}
	}
	for _, name := range fileFlags {
		if !flags["--"+name] {
			t.Errorf("fileFlags: there is no flag --%s", name)
		}
	}
	for path := range argWords {
		if !commands[path] {
			t.Errorf("argWords: there is no command %s", path)
		}
	}
	for _, path := range fileArgs {
		if !commands[path] {
			t.Errorf("fileArgs: there is no command %s", path)
		}
	}
}

// shellEnv is an environment in which the program is antrail, and no lab or agent is there.
func shellEnv(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, dir+"/antrail"); err != nil {
		t.Fatal(err)
	}
	return append(os.Environ(), asBinary+"=1", "PATH="+dir+":"+os.Getenv("PATH"), "HOME="+dir, "TERM=dumb", "COLUMNS=400",
		"ANTRAIL_LAB_DIR="+dir, socketEnv+"="+dir+"/none.sock")
}

// shown runs a shell that reads lines, and returns all that it shows.
func shown(t *testing.T, lines []string, shell ...string) string {
	t.Helper()
	if _, err := exec.LookPath(shell[0]); err != nil {
		t.Skipf("%s is not installed", shell[0])
	}
	cmd := exec.Command(shell[0], shell[1:]...)
	cmd.Env, cmd.Stdin = shellEnv(t), strings.NewReader(strings.Join(lines, "\n")+"\nexit 0\n")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.Map(func(r rune) rune { // without bells and the like
		if r < ' ' && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, string(out))
}

// TestBashCompletes has an interactive bash complete lines by the Tab key. The package
// bash-completion is not loaded, as on a Node.
func TestBashCompletes(t *testing.T) {
	got := shown(t, []string{
		"source <(antrail completion bash)",
		"antrail dump-me\t" + nodeFiles + " | head -1",
		"antrail dump-flows --no-s\t" + nodeFiles + " ARPSp\t| head -1",
		"antrail drops --reason=ct_nat\t",
		"antrail why --manifests examples/web-app default/client-a svc:default/sample-cl\t",
		"antrail drops --reason ct_f\t",
		"antrail dump-flows " + webApp + " --node node-a --policy default/db-f\t| wc -l",
		"antrail dump-flows " + webApp + " --node node-a --service=default/web-b\t| wc -l",
	}, "bash", "--norc", "--noprofile", "-i")
	for _, want := range []string{
		"antrail dump-meters " + nodeFiles + " | head",
		"antrail dump-flows --no-stats " + nodeFiles + " ARPSpoofGuard | head",
		"svc:default/sample-clusterip", "--reason ct_full ", "--reason=ct_nat_exhausted",
		"--policy default/db-from-web | wc -l\n", "--service=default/web-b-only | wc -l\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
}

// TestFishCompletes asks fish what a line may become.
func TestFishCompletes(t *testing.T) {
	got := shown(t, []string{
		"antrail completion fish | source",
		"complete --do-complete 'antrail dump-me'",
		"complete --do-complete 'antrail dump-flows " + seedFiles + " ARPSp'",
		"complete --do-complete 'antrail why --manifests examples/web-app default/client-a svc:default/sample-cl'",
		"complete --do-complete 'antrail dump-flows " + webApp + " --node node-a --policy=default/db-f'",
		"complete --do-complete 'antrail drops --reason ct_f'",
	}, "fish", "--no-config")
	for _, want := range []string{"dump-meters\tPrint meters", "ARPSpoofGuard\n", "svc:default/sample-clusterip\n", "--policy=default/db-from-web\n", "ct_full\tThe connection table is full"} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
}

// TestZshCompletes has zsh call the script's function, which asks the program and hands the words to
// _describe: this one prints them.
func TestZshCompletes(t *testing.T) {
	got := shown(t, []string{
		"autoload -U compinit && compinit -u -D",
		"source <(antrail completion zsh)",
		"_describe() { print -rl -- $completions }",
		"try() { words=(${(z)1}); [[ $1 == *' ' ]] && words+=(''); CURRENT=$#words; _antrail; true }",
		"try 'antrail dump-me'",
		"try 'antrail dump-flows " + seedFiles + " ARPSp'",
		"try 'antrail why --manifests examples/web-app default/client-a svc:default/sample-cl'",
		"try 'antrail dump-flows " + webApp + " --node node-a --policy default/db-f'",
		"try 'antrail drops --reason ct_f'",
	}, "zsh", "--no-rcs")
	for _, want := range []string{"dump-meters:Print meters", "ARPSpoofGuard\n", `svc\:default/sample-clusterip` + "\n", "default/db-from-web\n", "ct_full:The connection table is full"} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
}
