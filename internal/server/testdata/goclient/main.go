// Command goclient submits a sale with a client that oapi-codegen made from the
// service's own description, and waits for its result.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"goclient/api"
)

func main() {
	base, key, body := os.Args[1], os.Args[2], os.Args[3]
	if err := sell(context.Background(), base, key, body); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func sell(ctx context.Context, base, key, body string) error {
	c, err := api.NewClientWithResponses(base, api.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+key)
		return nil
	}))
	if err != nil {
		return err
	}
	sale, err := os.Open(body)
	if err != nil {
		return err
	}
	defer sale.Close()
	accepted, err := c.PostV1TransactionsWithBodyWithResponse(ctx, "application/json", sale)
	if err != nil {
		return err
	}
	if accepted.JSON202 == nil {
		return fmt.Errorf("submit: %s %s", accepted.Status(), accepted.Body)
	}
	id := accepted.JSON202.OperationId
	for {
		result, err := c.GetV1TransactionsOperationIdWithResponse(ctx, id)
		if err != nil {
			return err
		}
		if result.JSON200 == nil {
			return fmt.Errorf("result: %s %s", result.Status(), result.Body)
		}
		if result.JSON200.Status != "PROCESSING" {
			fmt.Println(result.JSON200.Status, *result.JSON200.TransactionId) // null of received documents alone
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
}
