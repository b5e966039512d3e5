//go:build !linux

package main

import "github.com/spf13/cobra"

// addNodeCommands adds nothing: there are no Nodes here. Lessons are for everybody.
func addNodeCommands(*cobra.Command) {}
