package main

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/antrail/antrail/agent"
	"github.com/spf13/cobra"
)

func agentCommand() *cobra.Command {
	var config, level, offload string
	c := &cobra.Command{
		Use:   "agent --config FILE",
		Short: "Run the Node agent with its switch",
		Long: `Run the Node agent: it loads the pipeline, opens the gateway, the tunnel and the pods' ports, sets up the
Node's routes and nftables table, and forwards until SIGTERM. Then it takes everything back.`,
		Example: "  antrail agent --config /etc/antrail/agent.yaml\n  antrail agent --config /etc/antrail/agent.yaml --offload auto",
		Args:    cobra.NoArgs,
	}
	c.Flags().StringVar(&config, "config", "", "configuration file (YAML)")
	c.Flags().StringVar(&level, "log-level", "", "debug, info, warn or error, in place of the configuration's log.level")
	c.Flags().StringVar(&offload, "offload", "", "auto: the kernel forwards established connections between pods by itself, where it can; off; when not given, as the configuration says")
	c.MarkFlagFilename("config")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if config == "" {
			return usageError{errors.New("--config is missing")}
		}
		if level != "" {
			if err := new(slog.Level).UnmarshalText([]byte(level)); err != nil {
				return usageError{err}
			}
		}
		conf, err := agent.LoadConfig(config)
		if err != nil {
			return err
		}
		if offload != "" {
			conf.Offload = offload
		}
		if !agent.KnownOffload(conf.Offload) {
			return usageError{fmt.Errorf("--offload is auto or off, not %q", offload)}
		}
		if level != "" {
			conf.Log.Level = level
		}
		return agent.Run(c.Context(), conf, conf.Log.NewLog(c.ErrOrStderr()))
	}
	return c
}
