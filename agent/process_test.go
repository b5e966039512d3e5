package agent

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	ossignal "os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/host/preflight"
	"github.com/antrail/antrail/internal/confine"
	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/switchd"
	"sigs.k8s.io/yaml"
)

// Agents as processes of their own, in a Node's namespace: this test binary is one
// when processEnv names a configuration.

const processEnv = "ANTRAIL_TEST_AGENT"

// takeOverArg has such a process take over.
const takeOverArg = "take-over"

// How such a process ends.
const (
	exitFailed    = 1
	exitTakenOver = 10
	exitAgain     = 11
)

func TestMain(m *testing.M) {
	switchd.Enter()
	if socket := os.Getenv(byHandEnv); socket != "" {
		os.Exit(runByHand(socket))
	}
	if socket := os.Getenv(awaitEnv); socket != "" && os.Getenv(processEnv) == "" {
		os.Exit(runAwait(socket))
	}
	if config := os.Getenv(processEnv); config != "" {
		os.Exit(runProcess(config, slices.Contains(os.Args, takeOverArg)))
	}
	os.Exit(m.Run())
}

func runProcess(file string, takeOver bool) int {
	ctx, stop := ossignal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	c, err := config.Load(file)
	if err == nil {
		c.Await = os.Getenv(awaitEnv)
		_, err = confine.Keep(preflight.Kept(c.Await == ""), switchd.Program())
	}
	if err == nil {
		err = Run(ctx, c, c.Log.NewLog(os.Stderr), takeOver)
	}
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "ended:", err)
	switch {
	case errors.Is(err, ErrAgain):
		return exitAgain
	case errors.Is(err, ErrTakenOver):
		return exitTakenOver
	}
	return exitFailed
}

// process is an agent.
type process struct {
	*exec.Cmd
	said  saying
	ended chan struct{} // closed when it has
}

// saying is the path of a log.
type saying string

func (s saying) String() string {
	text, err := os.ReadFile(string(s))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// startProcess starts an agent in a Node's namespace.
func startProcess(t *testing.T, node *nstest.Namespace, c *config.Config, args ...string) *process {
	t.Helper()
	return startBy(t, node.Command(os.Args[0], args...), c)
}

// startBy starts an agent by a command.
func startBy(t *testing.T, command *exec.Cmd, c *config.Config) *process {
	t.Helper()
	text, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	command.Env = append(os.Environ(), processEnv+"="+config)
	return startLogged(t, command, "an agent", func() error {
		if !c.OwnsSwitch() {
			return nil
		}
		return endOther(context.Background(), door.Dial(c.SwitchSocket()))
	})
}

// startLogged starts a process, which ends with the test; tidy runs after that. If the test
// fails, it logs what the process said under a name.
func startLogged(t *testing.T, command *exec.Cmd, name string, tidy func() error) *process {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log")) // a pipe would end with the switch, which outlives the agent
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	p := &process{command, saying(log.Name()), make(chan struct{})}
	p.Stdout, p.Stderr = log, log
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.Wait(); close(p.ended) }()
	t.Cleanup(func() {
		p.Process.Kill()
		<-p.ended
		if err := tidy(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("%s said:\n%s", name, p.said)
		}
	})
	return p
}

// stop sends SIGTERM, and waits until the process has ended without an error.
func (p *process) stop(t *testing.T) {
	t.Helper()
	p.Process.Signal(syscall.SIGTERM)
	p.wantExit(t, 0)
}

// wantExit waits until the agent ends, and checks how.
func (p *process) wantExit(t *testing.T, code int) {
	t.Helper()
	select {
	case <-p.ended:
		if got := p.ProcessState.ExitCode(); got != code {
			t.Fatalf("the agent ended with %d, want %d", got, code)
		}
	case <-time.After(time.Minute):
		p.Process.Signal(syscall.SIGQUIT)
		time.Sleep(time.Second)
		t.Fatal("the agent does not end; its goroutines stand in its log")
	}
}

// wantSaid waits until the agent says something.
func (p *process) wantSaid(t *testing.T, text string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !strings.Contains(p.said.String(), text); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the agent does not say %q", text)
		}
	}
}

// wantReady waits until an agent answers that is ready.
func wantReady(t *testing.T, c *config.Config) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		err := api.NewClient(c.Socket).Ready(ctx)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// askText is what an agent answers.
func askText(t *testing.T, c *config.Config, path string) string {
	t.Helper()
	text, err := api.NewClient(c.Socket).Get(t.Context(), path, url.Values{"stats": {"0"}, "names": {"1"}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
