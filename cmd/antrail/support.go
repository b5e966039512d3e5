package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/antrail/antrail/agent/support"
	"github.com/spf13/cobra"
)

// agentConfig is the agent's configuration, if there is none beside the socket.
const agentConfig = "/etc/antrail/agent.yaml"

// supportFlags are the flags of support-bundle.
type supportFlags struct {
	from  source
	o     support.Options
	write string
}

func supportBundleCommand() *cobra.Command {
	var s supportFlags
	c := &cobra.Command{
		Use:   "support-bundle",
		Short: "Write an archive for support: state, dumps, configuration, log, drops",
		Long: `Write one archive (tar.gz) for support: versions, state, objects, dumps, metrics, the last dropped packets with
their walks through today's tables, the agent's configuration without secrets, and the end of its log. Parts that could
not be read are listed in errors.txt.

The log and the configuration are those beside the socket (agent.log, agent.yaml), or those of --log-file and --config.
In a cluster the log is the container's: kubectl -n kube-system logs POD.

With --redact, names of objects, Nodes and links, MAC addresses and IP addresses are replaced, each by the same word
everywhere. The bytes of packets are left out. Addresses of one range stay in one range. Names that only the log has
are found as values of its fields (pod=…), so read a redacted archive before you give it away.`,
		Example: "  antrail support-bundle --node node-a -w support.tar.gz\n  antrail support-bundle --redact --config /etc/antrail/agent.yaml -w support.tar.gz\n  antrail support-bundle -w - | tar tz",
		Args:    noArgs,
	}
	s.from.addTo(c)
	c.Flags().MarkHidden("output") // an archive has one form
	f := c.Flags()
	f.StringVarP(&s.write, "write", "w", "", "file to write; - is standard output (default: antrail-support-TIME.tar.gz)")
	f.StringVar(&s.o.Config, "config", "", "configuration file of the agent (default: beside the socket, or "+agentConfig+")")
	f.StringVar(&s.o.Log, "log-file", "", "file of the agent's log (default: beside the socket)")
	f.IntVar(&s.o.Drops, "traces", 10, "walk so many of the last dropped packets")
	f.BoolVar(&s.o.Redact, "redact", false, "replace names and addresses")
	c.MarkFlagFilename("config")
	c.MarkFlagFilename("log-file")
	c.RunE = func(c *cobra.Command, _ []string) error { return s.run(c) }
	return c
}

func (s *supportFlags) run(c *cobra.Command) error {
	if s.o.Drops < 0 {
		return usageError{errors.New("--traces must not be negative")}
	}
	client, err := s.from.client(c.ErrOrStderr())
	if err != nil {
		return err
	}
	s.o.Client, s.o.Version, s.o.Now = client, programVersion(), time.Now()
	if s.from.manifests == "" && s.from.files.Flows == "" && s.from.program == "" {
		beside := strings.TrimSuffix(client.Socket(), ".sock")
		s.o.Log = cmp.Or(s.o.Log, there(beside+".log"))
		s.o.Config = cmp.Or(s.o.Config, there(beside+".yaml"), there(agentConfig))
	}
	if s.write == "-" {
		return s.writeTo(c, c.OutOrStdout(), "standard output")
	}
	name := cmp.Or(s.write, s.o.Now.UTC().Format("antrail-support-20060102-150405.tar.gz"))
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600) // it reveals much about a cluster
	if err != nil {
		return err
	}
	return errors.Join(s.writeTo(c, f, name), f.Close())
}

// writeTo writes the archive, and reports how many parts are missing.
func (s *supportFlags) writeTo(c *cobra.Command, w io.Writer, name string) error {
	missing, err := support.Write(c.Context(), w, s.o)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.ErrOrStderr(), "wrote %s; %d parts are missing: see errors.txt in it\n", name, missing)
	return nil
}

// there returns the name of a file that exists, and "" otherwise.
func there(name string) string {
	if _, err := os.Stat(name); err != nil {
		return ""
	}
	return name
}
