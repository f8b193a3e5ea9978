"""smelt.torch.transformers: models with random weights give what they give with their own attention."""

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import smelt.torch  # noqa: E402
from torch_devices import DEVICES  # noqa: E402

smelt.torch.transformers.register()
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

DTYPES = [torch.float32, torch.float16, torch.bfloat16]
SMALL = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4}
DECODER = {**SMALL, "num_key_value_heads": 2, "vocab_size": 101, "max_position_embeddings": 256}
VISION = {**SMALL, "image_size": 48, "patch_size": 8}


def decoder(kind, **settings):
    config = getattr(transformers, f"{kind}Config")(**DECODER, **settings)
    return getattr(transformers, f"{kind}ForCausalLM")(config)


MODELS = {
    "llama": (lambda: decoder("Llama"), "tokens"),
    "qwen3": (lambda: decoder("Qwen3", head_dim=32), "tokens"),
    "mistral, sliding window": (lambda: decoder("Mistral", sliding_window=5), "tokens"),
    "vit": (lambda: transformers.ViTModel(transformers.ViTConfig(**VISION)), "image"),
    "clip vision": (lambda: transformers.CLIPVisionModel(transformers.CLIPVisionConfig(**VISION)), "image"),
    "clip text": (lambda: transformers.CLIPTextModel(transformers.CLIPTextConfig(
        **SMALL, vocab_size=101, max_position_embeddings=64, eos_token_id=1, bos_token_id=2)), "tokens"),
    "sam": (lambda: sam(), "sam"),
    "sam 2": (lambda: sam2(), "sam 2"),
    "sam 3's image encoder": (lambda: transformers.Sam3ViTModel(transformers.Sam3ViTConfig(
        **VISION, window_size=3, global_attn_indexes=[1], pretrain_image_size=24)), "image"),
}


def sam():
    vision = transformers.SamVisionConfig(
        hidden_size=64, output_channels=32, num_hidden_layers=2, num_attention_heads=2, image_size=64, patch_size=8,
        window_size=3, global_attn_indexes=[1], mlp_dim=96, num_pos_feats=16)
    prompt = transformers.SamPromptEncoderConfig(hidden_size=32, image_size=64, patch_size=8, mask_input_channels=4)
    mask = transformers.SamMaskDecoderConfig(hidden_size=32, mlp_dim=64, num_hidden_layers=2, num_attention_heads=2,
                                             iou_head_hidden_dim=32)
    return transformers.SamModel(transformers.SamConfig(vision_config=vision, prompt_encoder_config=prompt,
                                                        mask_decoder_config=mask))


def sam2():
    backbone = transformers.Sam2HieraDetConfig(
        hidden_size=16, num_attention_heads=1, image_size=[64, 64], blocks_per_stage=[1, 1, 2, 1],
        embed_dim_per_stage=[16, 32, 64, 128], num_attention_heads_per_stage=[1, 2, 2, 4], window_size_per_stage=[4, 2, 2, 2],
        window_positional_embedding_background_size=[4, 4], global_attention_blocks=[3])
    vision = transformers.Sam2VisionConfig(backbone_config=backbone, backbone_channel_list=[128, 64, 32, 16],
                                           fpn_hidden_size=32, backbone_feature_sizes=[[16, 16], [8, 8], [4, 4]])
    prompt = transformers.Sam2PromptEncoderConfig(hidden_size=32, image_size=64, patch_size=16, mask_input_channels=4)
    mask = transformers.Sam2MaskDecoderConfig(hidden_size=32, mlp_dim=64, num_hidden_layers=2, num_attention_heads=2,
                                              iou_head_hidden_dim=32)
    return transformers.Sam2Model(transformers.Sam2Config(vision_config=vision, prompt_encoder_config=prompt,
                                                          mask_decoder_config=mask))


def randomised(model):
    """With weights that are far from zero, also where a model begins with zeros."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "rel_pos" in name:
                weight.normal_(std=0.5)
            elif weight.ndim > 1 and float(weight.std()) < 1e-3:  # SAM's: 1e-10
                weight.normal_(std=weight[0].numel()**-0.5)
    return model.eval()


def inputs_of(kind, dtype):
    if kind == "tokens":
        return {"input_ids": torch.randint(3, 101, (2, 19))}
    if kind == "image":
        return {"pixel_values": torch.randn(2, 3, 48, 48, dtype=dtype)}
    points = {"input_points": torch.tensor([[[[20.0, 31.0]]]], dtype=dtype), "input_labels": torch.tensor([[[1]]])}
    return {"pixel_values": torch.randn(1, 3, 64, 64, dtype=dtype), **points}


def output(model, given):
    with torch.no_grad():
        made = model(**given)
    return next(made[name] for name in ("logits", "pred_masks", "last_hidden_state") if name in made)


def close(made, expected, dtype):
    scale = float(expected.abs().max())
    assert scale > 0
    allowed = {torch.float32: 2e-5, torch.float16: 1e-2, torch.bfloat16: 8e-2}[dtype] * scale
    assert float((made.float() - expected.float()).abs().max()) <= allowed


class Counted:
    """How often the operation ran."""

    def __init__(self, monkeypatch):
        import smelt.torch.attention as attention
        self.count, called = 0, attention._attention_of

        def counted(*args):
            self.count += 1
            return called(*args)
        monkeypatch.setattr(attention, "_attention_of", counted)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_outputs_are_those_of_stock_attention(name, dtype, device, monkeypatch):
    create, kind = MODELS[name]
    model = randomised(create()).to(device, dtype)
    given = {key: x.to(device) for key, x in inputs_of(kind, dtype).items()}
    expected = output(model, given)
    counted = Counted(monkeypatch)
    model.set_attn_implementation("smelt")
    close(output(model, given), expected, dtype)
    assert counted.count >= 2
    model.set_attn_implementation("eager")
    before = counted.count
    close(output(model, given), expected, dtype)
    assert counted.count == before


def test_padding_is_masked():
    model = decoder("Llama").eval()
    given = {"input_ids": torch.randint(3, 101, (2, 9)), "attention_mask": torch.ones(2, 9, dtype=torch.long)}
    given["attention_mask"][0, :4] = 0
    expected = output(model, given)
    model.set_attn_implementation("smelt")
    made = output(model, given)
    close(made[1], expected[1], torch.float32)
    close(made[0, 4:], expected[0, 4:], torch.float32)


@pytest.mark.parametrize("kind, settings", [("Llama", {}), ("Qwen3", {"head_dim": 32}), ("Mistral", {"sliding_window": 5})])
@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("device", DEVICES)
def test_generate_gives_the_same_tokens(kind, settings, cache, device):
    model = decoder(kind, **settings).eval().to(device)
    prompt = torch.randint(3, 101, (2, 11), device=device)
    mask = torch.ones_like(prompt)
    mask[0, :3] = 0
    options = {"attention_mask": mask, "max_new_tokens": 24, "min_new_tokens": 24, "do_sample": False, "pad_token_id": 0,
               "cache_implementation": cache, "disable_compile": True}
    expected = model.generate(prompt, **options)
    model.set_attn_implementation("smelt")
    assert torch.equal(model.generate(prompt, **options), expected)


def test_gradients_of_relative_positions_and_weights():
    model = randomised(sam())
    given = inputs_of("sam", torch.float32)
    gradients = []
    for name in ("sdpa", "smelt"):
        model.set_attn_implementation(name)
        model.zero_grad()
        model(**given).pred_masks.square().mean().backward()
        gradients.append({n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None})
    assert any("rel_pos" in name for name in gradients[0]) and gradients[0].keys() == gradients[1].keys()
    for name, expected in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], expected, rtol=1e-3, atol=1e-4 * float(expected.abs().max()) + 1e-6)


def test_a_model_made_with_it():
    model = transformers.AutoModelForCausalLM.from_config(transformers.LlamaConfig(**DECODER), attn_implementation="smelt")
    assert model.config._attn_implementation == "smelt"
    config = sam().config
    config._attn_implementation = "smelt"
    made = transformers.SamModel(config)
    assert "Smelt" in type(made.vision_encoder.layers[0].attn).__name__


@pytest.mark.parametrize("name", ["softcap", "s_aux", "cache"])
def test_unsupported_arguments_are_refused(name):
    x = torch.ones(1, 2, 3, 8)
    with pytest.raises(ValueError, match=f"{name} is given; expected none, as it is not supported: choose another"):
        smelt.torch.transformers.attention_forward(torch.nn.Module(), x, x, x, None, **{name: torch.ones(2)})


def test_dropout_is_refused():
    model = decoder("Llama", attention_dropout=0.1)
    model.set_attn_implementation("smelt")
    given = inputs_of("tokens", torch.float32)
    output(model.eval(), given)
    with pytest.raises(ValueError, match="dropout is 0.1; expected 0"):
        output(model.train(), given)


def test_a_compiled_model_has_no_graph_break():
    model = transformers.ViTModel(transformers.ViTConfig(**VISION)).eval()
    given = inputs_of("image", torch.float32)
    expected = output(model, given)
    model.set_attn_implementation("smelt")
    close(output(torch.compile(model, backend="aot_eager", fullgraph=True), given), expected, torch.float32)


@pytest.mark.parametrize("height, width", [(4, 4), (4, 3), (2, 5)])
def test_relative_positions_of_other_sizes(height, width):
    modeling = pytest.importorskip("transformers.models.sam.modeling_sam")
    config = transformers.SamVisionConfig(hidden_size=32, num_attention_heads=2, image_size=64, patch_size=16)
    stock = modeling.SamVisionSdpaAttention(config, 0).eval()
    with torch.no_grad():
        for weight in stock.parameters():
            weight.normal_(std=0.5)
    hidden = torch.randn(2, height, width, 32)
    with torch.no_grad():
        expected = stock(hidden)[0]
        stock.__class__ = modeling.SAM_VISION_ATTENTION_CLASSES["smelt"]
        close(stock(hidden)[0], expected, torch.float32)
