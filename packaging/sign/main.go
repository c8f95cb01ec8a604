// Command sign signs a release as minisign does.
//
//	go run ./packaging/sign new SECRET         makes a key without a password and prints its public half
//	go run ./packaging/sign public SECRET      prints the public half
//	go run ./packaging/sign file SECRET FILE COMMENT   writes FILE.minisig
//
// The tool's own keys (minisign -G -W) and signatures do as well.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"tributary/internal/minisign"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sign:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) == 2 && args[0] == "new" {
		return create(args[1], out)
	}
	if len(args) < 2 || args[0] == "public" && len(args) != 2 || args[0] == "file" && len(args) != 4 {
		return errors.New("usage: sign new SECRET | public SECRET | file SECRET FILE COMMENT")
	}
	text, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	key, err := minisign.ParseSecretKey(text)
	if err != nil {
		return fmt.Errorf("%s: %w", args[1], err)
	}
	switch args[0] {
	case "public":
		_, err = fmt.Fprintln(out, key.Public().Text())
		return err
	case "file":
		return sign(key, args[2], args[3])
	}
	return fmt.Errorf("there is no %q", args[0])
}

// create never replaces a key: releases that it has signed could not be told
// from forged ones afterwards.
func create(path string, out io.Writer) error {
	key, err := minisign.Generate()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(key.File())
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, key.Public().Text())
	return err
}

func sign(key minisign.SecretKey, path, comment string) error {
	message, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	signature, err := key.Sign(message, comment)
	if err != nil {
		return err
	}
	return os.WriteFile(path+".minisig", signature, 0o644)
}
